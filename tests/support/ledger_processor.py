"""A processor that counts with everything it has, and what has to come of each partition's records.

Instances that are processes of their own load this file too, so its first half has nothing of the tests'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa

from streams_runtime import ProcessorContext, ProcessorRecord, PunctuationType

EVERY = 10
"""Between two sweeps by stream time, in ms."""
GAP = 25
"""The longest time between two orders of one visit, in ms."""
KEPT = 60
"""How long a visit is kept behind the latest end of one, in ms."""


class _Ledger:
    """Numbers the orders of each user, and those of each visit; tells at sweeps how many orders came since the last
    one, and how many visits are kept; and numbers its ticks.
    """

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.counts = context.state_store("counts")
        self.visits = context.state_store("visits")
        context.schedule(timedelta(milliseconds=EVERY), PunctuationType.STREAM_TIME, self.sweep)
        context.schedule(timedelta(seconds=1), PunctuationType.WALL_CLOCK_TIME, self.tick)

    def _counted(self, order: Mapping[str, Any], time: int) -> list[dict[str, Any]]:
        """What comes of an order."""
        self._next("since")
        user = order["user"]
        found = [self._told("order", order["id"], self._next(user))]
        start, end, number = time, time, 1
        for visit, value in self.visits.find_sessions(user, start - GAP, start + GAP):
            start, end, number = min(start, visit.start), max(end, visit.end), number + value["n"]
            self.visits.remove(*visit)
        self.visits.put(user, {"n": number}, start, end)
        return [*found, self._told("visit", start, number)]

    def sweep(self, time: int) -> None:
        since = self.counts.delete("since")
        self._tell("sweep", time, 0 if since is None else since["n"])
        self._tell("kept", time, len([*self.visits.all()]))

    def tick(self, time: int) -> None:
        self._tell("tick", time, self._next("ticks"))

    def _next(self, name: str) -> int:
        number: int = (self.counts.get(name) or {"n": 0})["n"] + 1
        self.counts.put(name, {"n": number})
        return number

    def _tell(self, kind: str, at: int, number: int) -> None:
        self.context.forward(self._told(kind, at, number), key=kind)

    def _told(self, kind: str, at: int, number: int) -> dict[str, Any]:
        return {"task": self.context.task_id, "kind": kind, "at": at, "n": number}


class Ledger(_Ledger):
    """One that takes records."""

    def process(self, record: ProcessorRecord) -> None:
        assert record.value is not None
        for row in self._counted(record.value, record.timestamp):
            self.context.forward(row, key=row["kind"])


class BatchLedger(_Ledger):
    """One that takes batches."""

    def process_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        found = []
        for order in records.to_pylist():
            told = self._counted(order, order["_timestamp"])
            found += [{"_row": order["_row"], "_key": row["kind"], **row} for row in told]
        return pa.RecordBatch.from_pylist(found)


class _Visits:
    """Visits as a list: user, start, end, number of orders."""

    def __init__(self) -> None:
        self.all: list[tuple[str, int, int, int]] = []
        self.latest = -1

    def kept(self) -> list[tuple[str, int, int, int]]:
        return [each for each in self.all if each[2] > self.latest - KEPT]

    def add(self, user: str, time: int) -> tuple[int, int]:
        """Start and number of orders of the visit that an order belongs to."""
        same = [each for each in self.kept() if each[0] == user and each[1] - GAP <= time <= each[2] + GAP]
        self.all = [each for each in self.all if each not in same]
        start, end = min([time, *(each[1] for each in same)]), max([time, *(each[2] for each in same)])
        number = 1 + sum(each[3] for each in same)
        # An order may be too late for a visit of its own, which is then none that is kept.
        self.all.append((user, start, end, number))
        self.latest = max(self.latest, end)
        return start, number


Told = tuple[str, int, int]
"""Kind, order or time, and number of what was forwarded."""


def expected(records: Iterable[tuple[int, dict[str, Any]]]) -> list[Told]:
    """What comes of a partition's orders, given with their times (ms), but for ticks."""
    found: list[Told] = []
    counts: dict[str, int] = {}
    visits = _Visits()
    due, stream_time, since = 0, -1, 0
    for time, order in records:
        stream_time, since = max(stream_time, time), since + 1
        counts[order["user"]] = number = counts.get(order["user"], 0) + 1
        found.append(("order", order["id"], number))
        found.append(("visit", *visits.add(order["user"], time)))
        if stream_time >= due:
            found.append(("sweep", stream_time, since))
            found.append(("kept", stream_time, len(visits.kept())))
            due, since = (stream_time // EVERY + 1) * EVERY, 0
    return found


def process(of: str = "Ledger") -> str:
    """The step's `process` that names a Ledger, or another class, with its columns and stores."""
    visits = f"{{key: STRING, value: n BIGINT, session: {{retention: {KEPT}ms}}}}"
    stores = f'{{counts: {{key: STRING, value: "n BIGINT"}}, visits: {visits}}}'
    value = "task STRING, kind STRING, at BIGINT, n BIGINT"
    return f'{{python: "ledger_processor:{of}", value: "{value}", key: STRING, stores: {stores}}}'


def topology(n: str, of: str = "Ledger") -> str:
    """Orders through a Ledger, or another class, to NAME-copies; and how much there was of each kind, through a
    repartition topic, to the store `totals` and NAME-totals.
    """
    row = 'key: {format: string}, value: {format: json, schema: "user STRING, amount BIGINT, id BIGINT"}'
    return f"""
sources:
  - {{name: orders, topic: {n}-orders, {row}}}
steps:
  - name: ledger
    from: orders
    process: {process(of)}
  - {{name: by-user, from: ledger, keyBy: kind}}
  - {{name: totals, from: by-user, aggregate: {{n: count(*)}}, store: totals}}
sinks:
  - {{from: ledger, topic: {n}-copies}}
  - {{from: totals, topic: {n}-totals}}
"""
