"""From a record's due moment to the moment at which a reader of the output topic has its update."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from bench_data import START_MS, Message, unique_orders
from bench_declared import HERE
from bench_experiment import Ground, Outcome, memory_figures, started
from bench_figures import percentile
from bench_plan import Turn
from bench_probe import PROBE, Outputs, wait_for_probe
from bench_process import Child
from bench_tasks import Columns, number_of, require_same, totals
from bench_verify import decode_any

LEAD_S = 2.0
"""What the paced producer is given to start up."""
WARM_UP_SHARE = 0.25
"""Share of the records, the first ones, whose latency does not count."""
PATIENCE_S = 60.0
_QUIET_S = 0.5


@dataclass(slots=True)
class Latency:
    """Records come at a steady rate, each of another user, so that each is one update in the output."""

    ground: Ground

    def prepare(self) -> None:
        """Nothing: each turn has an input of its own, empty at first."""

    def run(self, turn: Turn) -> Outcome:
        """From a first record that came out, through the whole time, to the last update."""
        ground, case = self.ground, self.ground.case
        orders, output = f"{ground.name(turn)}-orders", ground.output(turn)
        ground.cluster.create(orders, case.partitions)
        launch = ground.launch(turn, {"orders": orders, "output": output})
        outputs = Outputs(ground.cluster, output)
        found, seen_at = Columns.empty(case.records), [0.0] * case.records
        try:
            with started(ground.sides(turn.contestant), [launch]) as (clients, memory):
                (client,) = clients
                ground.cluster.fill([orders], [[Message(PROBE.key, PROBE.value, START_MS)]])
                wait_for_probe(outputs, client.child.require_alive, case.limit_s)
                begin = time.time() + LEAD_S
                with Child("paced", paced(ground, orders, case.records, 0, 0, begin), launch.own.folder) as child:
                    self._follow(outputs, begin, found, seen_at)
                    behind = orjson.loads(child.wait(PATIENCE_S)[-1])["behind_s"]
                client.stop()
        finally:
            outputs.close()
        what = f"{turn.contestant}, round {turn.round}, output topic"
        require_same(what, totals(unique_orders(case.records), case.records), found)
        first = int(case.records * WARM_UP_SHARE)
        spans = [1000 * (seen_at[number] - begin - number / case.rate) for number in range(first, case.records)]
        return Outcome({**figures(spans), **memory_figures(memory, case.partitions)}, {"producer_behind_s": behind})

    def _follow(self, outputs: Outputs, begin: float, found: Columns, seen_at: list[float]) -> None:
        """Read updates until every record's was seen and nothing more comes, or until nothing has come for long."""
        case = self.ground.case
        missing, last, end = case.records, time.time(), begin + case.records / case.rate
        while time.time() < max(end, last) + PATIENCE_S:
            update = outputs.next(_QUIET_S)
            if update is None:
                if not missing:
                    return
                continue
            key, value, last = update
            if key != PROBE.key:
                user = number_of(key, case.records)
                if not seen_at[user]:
                    seen_at[user], missing = last, missing - 1
                found.sums[user], found.counts[user] = decode_any(value)


def figures(milliseconds: Sequence[float]) -> dict[str, float]:
    """The percentiles that are told."""
    shares = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}
    return {name: percentile(milliseconds, share) for name, share in shares.items()}


def paced(ground: Ground, topic: str, records: int, keys: int, first: int, begin: float) -> list[str]:
    """The command that writes the orders from `first` on, at the case's rate."""
    told = {
        "bootstrap-servers": ground.cluster.bootstrap_servers,
        "topic": topic,
        "records": records,
        "keys": keys,
        "seed": ground.seed,
        "first": first,
        "rate": ground.case.rate,
        "begin": begin,
    }
    words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    return [sys.executable, str(HERE / "paced.py"), *words]
