"""A store asked while its records are being processed: how long point queries and range scans take."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson
from asking import NO_ANSWER
from bench_data import Orders, make_orders, order_messages, running_totals
from bench_declared import HERE, Case
from bench_experiment import Ground, Outcome, memory_figures, started
from bench_figures import percentile
from bench_latency import LEAD_S, PATIENCE_S, paced
from bench_plan import Turn
from bench_process import Child
from bench_side import wait_until
from bench_tasks import REFUSED_SHARE
from bench_verify import WrongResultError

STORE = "totals"
WARM_UP_SHARE = 0.25
_OK = 200


@dataclass(slots=True)
class Queries:
    """A backlog of the case's records first, then its rate while queries come at theirs."""

    ground: Ground

    def prepare(self) -> None:
        """Nothing: each turn has an input of its own, since it grows while it is measured."""

    def run(self, turn: Turn) -> Outcome:
        """Every answer has to be a total that the key has had since the backlog."""
        ground, case = self.ground, self.ground.case
        total = case.records + case.rate * case.seconds
        orders = make_orders(total, case.keys, ground.seed, REFUSED_SHARE)
        topic, output = f"{ground.name(turn)}-orders", ground.output(turn)
        ground.cluster.create(topic, case.partitions)
        backlog = Orders(orders.users[: case.records], orders.amounts[: case.records])
        ground.cluster.fill([topic], order_messages(backlog))
        launch = ground.launch(turn, {"orders": topic, "output": output})
        with started(ground.sides(turn.contestant), [launch]) as (clients, memory):
            (client,) = clients
            wait_until("through the backlog", lambda: client.seen().processed >= case.records or None, case.limit_s)
            url, folder = client.url(), launch.own.folder
            if url is None:
                raise TimeoutError(f"{turn.contestant} has said no address for queries")
            begin = time.time() + LEAD_S
            writing = paced(ground, topic, total, case.keys, case.records, begin)
            with (
                Child("paced", writing, folder) as writer,
                Child("asking", asking(ground, url, begin), folder) as asker,
            ):
                answers = [orjson.loads(line) for line in asker.wait(case.seconds + PATIENCE_S)]
                behind = orjson.loads(writer.wait(PATIENCE_S)[-1])["behind_s"]
            wait_until("through all records", lambda: client.seen().processed >= total or None, PATIENCE_S)
            client.stop()
        require_answered(turn.contestant, case, answers)
        require_answers(turn.contestant, History(orders, case.records), answers)
        counted = answers[int(len(answers) * WARM_UP_SHARE) :]
        points = [each["ms"] for each in counted if not each["prefix"]]
        scans = [each["ms"] for each in counted if each["prefix"]]
        figures = {"p50_ms": percentile(points, 0.5), "p99_ms": percentile(points, 0.99)}
        figures |= {"scan_p50_ms": percentile(scans, 0.5), "scan_p99_ms": percentile(scans, 0.99)} if scans else {}
        return Outcome({**figures, **memory_figures(memory, case.partitions)}, {"producer_behind_s": behind})


def asking(ground: Ground, url: str, begin: float) -> list[str]:
    """The command that asks the instance at the case's rates."""
    case = ground.case
    told = {
        "url": url,
        "store": STORE,
        "keys": case.keys,
        "queries": case.queries,
        "scans": case.scans,
        "seconds": case.seconds,
        "seed": ground.seed,
        "begin": begin,
    }
    words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    return [sys.executable, str(HERE / "asking.py"), *words]


class History:
    """Which totals each key has had after the first `backlog` orders."""

    def __init__(self, orders: Orders, backlog: int) -> None:
        accepted = orders.amounts >= 0
        taken = Orders(orders.users[accepted], orders.amounts[accepted])
        sums, counts = running_totals(taken)
        before = int(accepted[:backlog].sum())
        self.after: dict[str, int] = {}
        self._sums: dict[tuple[str, int], int] = {}
        rows = zip(taken.users.tolist(), counts.tolist(), sums.tolist(), strict=True)
        for number, (user, count, total) in enumerate(rows):
            key = f"u{user}"
            self._sums[key, count] = total
            if number < before:
                self.after[key] = count

    def require(self, what: str, key: str, value: dict[str, int] | None) -> None:
        """Raise WrongResultError when the key never had that value, or only before the backlog's end."""
        least = self.after.get(key, 0)
        if value is None:
            right = least == 0
        else:
            right = value["n"] >= least and self._sums.get((key, value["n"])) == value["total"]
        if not right:
            raise WrongResultError(f"{what}: {key} differ: found {value}, which it was not after {least} orders")


def require_answers(what: str, history: History, answers: Iterable[dict[str, object]]) -> None:
    """Raise WrongResultError for the first answer that is not right."""
    for each in answers:
        lines = [orjson.loads(line) for line in str(each["body"]).splitlines()]
        prefix = str(each["prefix"])
        if prefix:
            *lines, last = lines
            there = {key for key in history.after if key.startswith(prefix)}
            if last != {"complete": {"records": len(lines)}} or (there - {line["key"] for line in lines}):
                raise WrongResultError(f"{what}: the range of {prefix} is not whole: {last}")
        for line in lines:
            history.require(what, line["key"], line["value"])


def require_answered(what: str, case: Case, answers: Sequence[Mapping[str, object]]) -> None:
    """Raise WrongResultError unless all that the case asks was answered, with 200."""
    if missing := [each["body"] for each in answers if each["status"] == NO_ANSWER]:
        raise WrongResultError(f"{what}: {len(missing):,} of {len(answers):,} queries had no answer: {missing[0]}")
    for each in answers:
        if each["status"] != _OK:
            raise WrongResultError(f"{what}: answer {each['status']}: {each['body']}")
    if len(answers) != case.seconds * (case.queries + case.scans):
        raise WrongResultError(f"{what}: {len(answers):,} answers have come, not all")
