"""A processor that counts with everything it has, and what has to come of each partition's records.

Instances that are processes of their own load this file too, so its first half has nothing of the tests'.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from streams_runtime import ProcessorContext, ProcessorRecord, PunctuationType

EVERY = 10
"""Between two sweeps by stream time, in ms."""


class Ledger:
    """Numbers the orders of each user, tells at sweeps how many came since the last one, and numbers its ticks."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.counts = context.state_store("counts")
        context.schedule(timedelta(milliseconds=EVERY), PunctuationType.STREAM_TIME, self.sweep)
        context.schedule(timedelta(seconds=1), PunctuationType.WALL_CLOCK_TIME, self.tick)

    def process(self, record: ProcessorRecord) -> None:
        assert record.value is not None
        self._next("since")
        self._tell("order", record.value["id"], self._next(record.value["user"]))

    def sweep(self, time: int) -> None:
        since = self.counts.delete("since")
        self._tell("sweep", time, 0 if since is None else since["n"])

    def tick(self, time: int) -> None:
        self._tell("tick", time, self._next("ticks"))

    def _next(self, name: str) -> int:
        number: int = (self.counts.get(name) or {"n": 0})["n"] + 1
        self.counts.put(name, {"n": number})
        return number

    def _tell(self, kind: str, at: int, number: int) -> None:
        self.context.forward({"task": self.context.task_id, "kind": kind, "at": at, "n": number}, key=kind)


Told = tuple[str, int, int]
"""Kind, order or time, and number of what was forwarded."""


def expected(records: Iterable[tuple[int, dict[str, Any]]]) -> list[Told]:
    """What comes of a partition's orders, given with their times (ms), but for ticks."""
    found: list[Told] = []
    counts: dict[str, int] = {}
    due, stream_time, since = 0, -1, 0
    for time, order in records:
        stream_time, since = max(stream_time, time), since + 1
        counts[order["user"]] = number = counts.get(order["user"], 0) + 1
        found.append(("order", order["id"], number))
        if stream_time >= due:
            found.append(("sweep", stream_time, since))
            due, since = (stream_time // EVERY + 1) * EVERY, 0
    return found


def topology(n: str) -> str:
    """Orders through a Ledger, to NAME-copies; and how much there was of each kind, through a repartition topic, to
    the store `totals` and NAME-totals.
    """
    row = 'key: {format: string}, value: {format: json, schema: "user STRING, amount BIGINT, id BIGINT"}'
    stores = '{counts: {key: STRING, value: "n BIGINT"}}'
    value = "task STRING, kind STRING, at BIGINT, n BIGINT"
    return f"""
sources:
  - {{name: orders, topic: {n}-orders, {row}}}
steps:
  - name: ledger
    from: orders
    process: {{python: "ledger_processor:Ledger", value: "{value}", key: STRING, stores: {stores}}}
  - {{name: by-user, from: ledger, keyBy: kind}}
  - {{name: totals, from: by-user, aggregate: {{n: count(*)}}, store: totals}}
sinks:
  - {{from: ledger, topic: {n}-copies}}
  - {{from: totals, topic: {n}-totals}}
"""
