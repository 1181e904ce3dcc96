"""One instance under load for long: bursts, a steady flow and queries. Its memory may not grow once it has settled."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import orjson
from bench_backlog import require_store
from bench_data import Orders, make_orders, order_messages
from bench_experiment import Ground, Outcome, memory_figures, started
from bench_kafka import CommitWatch
from bench_latency import PATIENCE_S, paced
from bench_plan import Turn
from bench_process import Child
from bench_queries import asking, require_answered
from bench_side import wait_until
from bench_tasks import REFUSED_SHARE, last_totals, require_same, totals
from bench_verify import WrongResultError, require_count

MOST_GROWTH_PERCENT = 5.0
"""From the middle third of the time to the last one. In the first third caches, stores and Java's heap fill."""
_LEAD_S = 15.0  # until what is paced has made its records


@dataclass(slots=True)
class Soak:
    """The case's records come in bursts, evenly over its seconds, and others at its rate, while it is asked."""

    ground: Ground

    def prepare(self) -> None:
        """Nothing: a turn has an input of its own, since it grows while it is measured."""

    def run(self, turn: Turn) -> Outcome:
        """Raises WrongResultError also for memory that grows."""
        ground, case = self.ground, self.ground.case
        total = case.records + case.rate * case.seconds
        orders = make_orders(total, case.keys, ground.seed, REFUSED_SHARE)
        topic, output = f"{ground.name(turn)}-orders", ground.output(turn)
        ground.cluster.create(topic, case.partitions)
        launch = ground.launch(turn, {"orders": topic, "output": output})
        side, what = ground.sides(turn.contestant), f"{turn.contestant}, round {turn.round}"
        expected = totals(orders, case.keys)
        with started(side, [launch]) as (clients, memory):
            (client,) = clients
            wait_until("RUNNING", lambda: client.seen().moments.get("running"), case.limit_s)
            url = wait_until("at an address for queries", client.url, case.limit_s)
            begin = time.time() + _LEAD_S
            writing = paced(ground, topic, total, case.keys, case.records, begin)
            with (
                Child("paced", writing, launch.own.folder) as writer,
                Child("asking", asking(ground, url, begin), launch.own.folder) as asker,
            ):
                self._burst(topic, orders, begin, [client.child, writer, asker])
                answers = [orjson.loads(line) for line in asker.wait(case.seconds + PATIENCE_S)]
                behind = orjson.loads(writer.wait(PATIENCE_S)[-1])["behind_s"]
            CommitWatch(ground.cluster, launch.application_id, topic).wait(client.child.require_alive, case.limit_s)
            require_store(what, clients, expected)
            last = client.stop()
        require_answered(what, case, answers)
        require_count(f"{what}, records processed", total, last.processed)
        for name, written in (("output", output), ("changelog", launch.changelog_topic)):
            found = ((each.key, each.value) for each in ground.cluster.records(written))
            require_same(f"{what}, {name} topic", expected, last_totals(found, case.keys))
        figures = thirds([size for at, size in memory.looks if begin <= at < begin + case.seconds])
        require_bounded(what, figures)
        return Outcome({**figures, **memory_figures(memory, case.partitions)}, {"producer_behind_s": behind})

    def _burst(self, topic: str, orders: Orders, begin: float, needed: Sequence[Child]) -> None:
        """Write the bursts, each when it is due."""
        case = self.ground.case
        bursts = list(_bursts(orders, case.records, case.burst))
        for number, (first, burst) in enumerate(bursts):
            due = begin + number * case.seconds / len(bursts)
            while time.time() < due:
                for child in needed:
                    child.require_alive()
                time.sleep(min(1.0, max(0.0, due - time.time())))
            self.ground.cluster.write([topic], order_messages(burst, first=first))


def _bursts(orders: Orders, records: int, burst: int) -> Iterator[tuple[int, Orders]]:
    """The first orders so many at once, each with the number of its first one."""
    for first in range(0, records, burst):
        end = min(records, first + burst)
        yield first, Orders(orders.users[first:end], orders.amounts[first:end])


def thirds(looks: Sequence[float]) -> dict[str, float]:
    """What the memory (MiB) was in the middle third and in the last one (pure)."""
    third = len(looks) // 3
    middle, last = median(looks[third : 2 * third]), median(looks[2 * third :])
    return {"middle_mib": middle, "last_mib": last, "growth_percent": 100 * (last / middle - 1)}


def require_bounded(what: str, figures: dict[str, float]) -> None:
    """Raise WrongResultError where the memory has grown."""
    if figures["growth_percent"] > MOST_GROWTH_PERCENT:
        raise WrongResultError(
            f"{what}: memory has grown by {figures['growth_percent']:.1f} %, from {figures['middle_mib']:,.0f} MiB in"
            f" the middle third to {figures['last_mib']:,.0f} MiB in the last; {MOST_GROWTH_PERCENT:g} % is the most"
        )
