"""Processors as users write them, for chains of made topologies: each with its way to keep state, to forward, and to
count on time. All take the columns `v BIGINT, g STRING` and forward these.

An application may have one of them several times, and its stores have names of their own. So `Counting_s3` is Counting
with the store `s3-kept`. What comes of each is said once more, without any of this, in steps_model/processors.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime import ProcessorContext, ProcessorRecord, PunctuationType

STREAM_TIME = PunctuationType.STREAM_TIME
BAD = (4, 9, -1)
"""The `v` of records over which Picky fails."""


def name_of(key: Any) -> str:
    """A key of any format as a text, by which a store keeps something."""
    if isinstance(key, Mapping):
        return json.dumps(key, separators=(",", ":"))
    return key.hex() if isinstance(key, bytes) else str(key)


class _Keeping:
    """With one store."""

    STORE: ClassVar[str]

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.kept = context.state_store(self.STORE)
        self.scheduled()

    def scheduled(self) -> None:
        """Schedule nothing."""

    def tell(self, v: int | None, g: str | None, **more: Any) -> None:
        self.context.forward({"v": v, "g": g}, **more)


class Counting(_Keeping):
    """Counts the records of each key until one has no value, and adds how late a record is."""

    def process(self, record: ProcessorRecord) -> None:
        if record.value is None:
            self.kept.delete(name_of(record.key))
            self.context.forward(record.with_headers((("gone", None),)))
            return
        v, g = record.value["v"], record.value["g"]
        if record.key is None:
            self.tell(v, g)
            return
        name = name_of(record.key)
        number = (self.kept.get(name) or {"n": 0})["n"] + 1
        self.kept.put(name, {"n": number})
        late = (self.context.current_stream_time_ms() - record.timestamp) // 100
        self.tell((v or 0) + 10 * number + late % 7, g)


class Windowing(_Keeping):
    """Counts the records of each key in windows of two seconds, and tells how many the last three have."""

    def process(self, record: ProcessorRecord) -> None:
        name, start = name_of(record.key), record.timestamp // 2000 * 2000
        if record.value is None:
            self.kept.put(name, None, start)
        else:
            number = (self.kept.fetch(name, start) or {"n": 0})["n"] + 1
            self.kept.put(name, {"n": number}, start)
        recent = sum(value["n"] for _, value in self.kept.fetch(name, start - 4000, start))
        headers = (*record.headers, ("recent", str(recent).encode()))
        self.tell(recent, None if record.value is None else record.value["g"], headers=headers)


class Visiting(_Keeping):
    """Puts records of a key that are at most 1.5 seconds apart into one session, and tells its length at its end."""

    def process(self, record: ProcessorRecord) -> None:
        name, time = name_of(record.key), record.timestamp
        if record.value is None:
            for session, _ in [*self.kept.fetch(name)]:
                self.kept.remove(*session)
            return
        start, end, number = time, time, 1
        for session, value in self.kept.find_sessions(name, time - 1500, time + 1500):
            start, end, number = min(start, session.start), max(end, session.end), number + value["n"]
            self.kept.remove(*session)
        self.kept.put(name, {"n": number}, start, end)
        self.tell(number + (end - start) // 100, record.value["g"], timestamp=end)


class Sweeping(_Keeping):
    """Keeps the last record of each key, passes every second one on, and tells of all of them every four seconds."""

    def scheduled(self) -> None:
        self.context.schedule(timedelta(seconds=4), STREAM_TIME, self.sweep)

    def process(self, record: ProcessorRecord) -> None:
        name = name_of(record.key)
        if record.value is None:
            if self.kept.delete(name) is not None:
                self.context.forward(None, key=name)
            return
        before = self.kept.get(name) or {"n": 0}
        now = {"n": before["n"] + 1, "g": record.value["g"], "at": record.timestamp}
        self.kept.put(name, now)
        if now["n"] % 2 == 0:
            self.tell(record.value["v"], record.value["g"], key=name if record.key is not None else None)

    def sweep(self, time: int) -> None:
        for name, row in self.kept.all(reverse=True):
            self.kept.delete(name)
            at = {"timestamp": row["at"]} if row["n"] % 3 == 1 else {}
            self.tell(row["n"], row["g"], key=name, **at)


class Resetting(_Keeping):
    """Numbers all records of its task, from 0 again every three seconds, and a hundred more every seven."""

    def scheduled(self) -> None:
        self.first = self.context.schedule(timedelta(seconds=3), STREAM_TIME, self.reset)
        self.context.schedule(timedelta(seconds=7), STREAM_TIME, self.jump)

    def process(self, record: ProcessorRecord) -> None:
        number = self._next("n", 1)
        if record.value is None:
            self.context.forward(None)
        else:
            self.tell((record.value["v"] or 0) + number, record.value["g"])

    def reset(self, time: int) -> None:
        self.kept.put("n", {"n": time // 100 % 5})
        if self._next("resets", 1) == 4:
            self.first.cancel()

    def jump(self, time: int) -> None:
        self._next("n", 100)

    def _next(self, name: str, by: int) -> int:
        number: int = (self.kept.get(name) or {"n": 0})["n"] + by
        self.kept.put(name, {"n": number})
        return number


class Rekeying:
    """Gives keys that are numbers; of some records two, the second one of another time."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: ProcessorRecord) -> None:
        if record.value is None:
            self.context.forward(None, key=record.timestamp // 1000 % 4)
            return
        v, g = record.value["v"], record.value["g"]
        self.context.forward({"v": v, "g": g}, key=None if v is None else v % 4)
        if v is not None and v > 3:
            self.context.forward({"v": -v, "g": g}, key=0, timestamp=record.timestamp - 1200, headers=())


class Sorting:
    """Forwards even numbers to one output and odd ones to another; what is none to both."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: ProcessorRecord) -> None:
        value = record.value and {"v": record.value["v"], "g": record.value["g"]}
        self.context.forward(value, key=self.key(record), to=self.to(value))

    def to(self, value: Mapping[str, Any] | None) -> str | None:
        if value is None or value["v"] is None:
            return None
        return "odd" if value["v"] % 2 else "even"

    def key(self, record: ProcessorRecord) -> Any:
        return record.key


class SortingKeys(Sorting):
    """The same under keys of its own."""

    def key(self, record: ProcessorRecord) -> str:
        return f"k{record.timestamp % 3}"


class Columns:
    """In batches: doubles numbers and adds how late they are, says odd ones twice, and leaves out those below -5."""

    def process_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        late = pc.divide(pc.subtract(records["_stream_time"], records["_timestamp"]), 100)
        given = pa.table(
            {
                "_row": records["_row"],
                "_timestamp": records["_timestamp"],
                "_tombstone": records["_tombstone"],
                "v": pc.add(pc.multiply(records["v"], 2), late),
                "g": records["g"],
                "own": records["v"],
            }
        )
        kept = given.filter(pc.fill_null(pc.greater_equal(given["own"], -5), True))
        odd = kept.filter(pc.equal(pc.bit_wise_and(kept["own"], 1), 1))
        later = pc.add(odd["_timestamp"], 1500)
        return pa.concat_tables([odd.set_column(1, "_timestamp", later), kept]).drop_columns(["own"])


class Batching(_Keeping):
    """In batches: numbers the records of each key, in their order, and keeps the sum of all; from 0 every four
    seconds, which is told under the key `sum`.
    """

    def scheduled(self) -> None:
        self.context.schedule(timedelta(seconds=4), STREAM_TIME, self.sweep)

    def process_batch(self, records: pa.RecordBatch) -> pa.Table | None:
        rows = [self._row(each) for each in records.to_pylist() if not each["_tombstone"]]
        return pa.Table.from_pylist(rows) if rows else None

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        name = name_of(row["_key"])
        number = (self.kept.get(name) or {"n": 0})["n"] + 1
        self.kept.put(name, {"n": number})
        whole = (self.kept.get("sum") or {"n": 0})["n"] + (row["v"] or 0)
        self.kept.put("sum", {"n": whole})
        return {"_row": row["_row"], "_key": name, "v": 100 * number + whole % 100, "g": row["g"]}

    def sweep(self, time: int) -> None:
        if (whole := self.kept.delete("sum")) is not None:
            self.tell(whole["n"], None, key="sum")


class Picky(Counting):
    """Counts as ever, and fails over some records when it has counted and forwarded them."""

    def process(self, record: ProcessorRecord) -> None:
        super().process(record)
        if record.value is not None and record.value["v"] in BAD:
            raise ValueError(f"no {record.value['v']}")


class PickyColumns(Columns):
    """The same columns, and a failure for all of a batch that has such a record."""

    def process_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        if pc.any(pc.is_in(records["v"], pa.array(BAD))).as_py():
            raise ValueError("no such number")
        return super().process_batch(records)


def __getattr__(name: str) -> Any:
    of, _, step = name.partition("_")
    made = globals().get(of)
    if not step or not isinstance(made, type):
        raise AttributeError(name)
    return type(name, (made,), {"STORE": f"{step}-kept"})
