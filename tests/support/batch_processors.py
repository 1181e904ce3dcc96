"""Processors of batches as users write them: twins of others that go row by row, columns, and single mistakes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

import processor_classes
import pyarrow as pa
import pyarrow.compute as pc
import scripted_processor

from streams_runtime import ProcessorContext, ProcessorRecord, PunctuationType
from streams_runtime.processors.user_processors.processor_records import RecordMetadata

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class RowByRow:
    """A context for a class with `process`, which is given the rows of batches one by one."""

    def __init__(self, context: ProcessorContext) -> None:
        self._context = context
        self._row: dict[str, Any] | None = None
        self._forwarded: list[tuple[tuple[int, str], str | None, dict[str, Any]]] = []
        self.given: list[dict[str, Any]] = []
        """The rows of all batches."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def run(self, records: pa.RecordBatch, process: Callable[[ProcessorRecord], None]) -> None:
        for row in records.to_pylist():
            self._row = row
            self.given.append(row)
            columns = {name: value for name, value in row.items() if not name.startswith("_")}
            headers = tuple((each["key"], each["value"]) for each in row["_headers"] or ())
            value = None if row["_tombstone"] else columns
            process(ProcessorRecord(row["_key"], value, row["_timestamp"], headers))
        self._row = None
        # The first rows of all records, then their second ones: how they lie beside each other is for the runtime.
        for _, found in groupby(sorted(self._forwarded, key=itemgetter(0)), itemgetter(0)):
            group = [*found]
            rows = [row for _, _, row in group]
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            columns["_headers"] = pa.array(columns["_headers"], HEADERS)
            columns["seen"] = pa.array(columns["seen"], pa.string())
            columns["_key"] = pa.array(columns["_key"], pa.string())
            self._context.forward_batch(pa.RecordBatch.from_pydict(columns), to=group[0][1])
        self._forwarded = []

    def forward(self, value: Any, *, to: str | None = None, **given: Any) -> None:
        if self._row is None:
            self._context.forward(value, to=to, **given)
            return
        key, time = self._row["_key"], self._row["_timestamp"]
        headers = [(each["key"], each["value"]) for each in self._row["_headers"] or ()]
        if isinstance(value, ProcessorRecord):
            key, time, headers, value = value.key, value.timestamp, [*value.headers], value.value
        row = {
            "_row": self._row["_row"],
            "_key": given.get("key", key),
            "_timestamp": given.get("timestamp", time),
            "_headers": [{"key": name, "value": data} for name, data in headers] or None,
            "_tombstone": value is None,
            "seen": None if value is None else value["seen"],
        }
        number = sum(each["_row"] == row["_row"] for _, _, each in self._forwarded)
        self._forwarded.append(((number, str(to)), to, row))

    def record_metadata(self) -> RecordMetadata | None:
        if self._row is None:
            return self._context.record_metadata()
        return RecordMetadata(self._row["_topic"], self._row["_partition"], self._row["_offset"])

    def current_stream_time_ms(self) -> int:
        return self._context.current_stream_time_ms() if self._row is None else int(self._row["_stream_time"])


class InBatches:
    """Does row by row what a class does record by record."""

    OF: ClassVar[type[Any]]

    def init(self, context: ProcessorContext) -> None:
        self.rows = RowByRow(context)
        self.made = self.OF()
        self.made.init(self.rows)

    def process_batch(self, records: pa.RecordBatch) -> None:
        self.rows.run(records, self.made.process)


class Everything(InBatches):
    OF = processor_classes.Everything


class Echo(InBatches):
    OF = processor_classes.Echo


class Keeping(InBatches):
    OF = processor_classes.Keeping


class Scripted(InBatches):
    OF = scripted_processor.Scripted


class Addressing(InBatches):
    OF = scripted_processor.Addressing


class Windowing(InBatches):
    OF = scripted_processor.Windowing


class Sessioning(InBatches):
    OF = scripted_processor.Sessioning


class Columns:
    """What each record asks for in capitals, twice where its number is odd, and not at all where it is none."""

    def process_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        asked = records.filter(pc.is_valid(records["n"]))
        odd = asked.filter(pc.equal(pc.bit_wise_and(asked["n"], 1), 1))
        rows = pa.concat_arrays([asked["_row"], odd["_row"]])
        seen = pa.concat_arrays([pc.utf8_upper(asked["op"]), odd["op"]])
        return pa.record_batch({"_row": rows, "seen": seen})


class Cuts:
    """Tells of each batch how it was cut, which is what no processor may depend on; sweeps by stream time."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule(timedelta(milliseconds=10), PunctuationType.STREAM_TIME, self.sweep)

    def process_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        now = self.context.current_stream_time_ms()
        text = f"{records['_offset'].to_pylist()} at {records['_stream_time'].to_pylist()} to {now}"
        assert self.context.record_metadata() is None
        return pa.record_batch({"_row": records["_row"][-1:], "seen": [text]})

    def sweep(self, time: int) -> None:
        self.context.forward({"seen": f"sweep {time}"}, key="sweep")


class Failing:
    """Makes the mistake that the first record's `op` names."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process_batch(self, records: pa.RecordBatch) -> Any:
        return getattr(self, str(records["op"][0]))(records)

    def raised(self, records: pa.RecordBatch) -> None:
        raise ValueError("a bad batch")

    def single(self, records: pa.RecordBatch) -> None:
        self.context.forward({"seen": "x"})

    def list(self, records: pa.RecordBatch) -> Any:
        return [{"seen": "x"}]

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"seen": ["x"] * len(records)})

    def beyond(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"_row": [len(records)], "seen": ["x"]})

    def unknown(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"_row": [0], "sen": ["x"]})

    def missing(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return records.select(["_row", "_key"])

    def twice(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array([0]), pa.array(["x"]), pa.array(["y"])], ["_row", "seen", "seen"])

    def type(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"_row": [0], "seen": [5]})

    def time(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"_row": [0], "_timestamp": [-1], "seen": ["x"]})

    def output(self, records: pa.RecordBatch) -> None:
        self.context.forward_batch(pa.record_batch({"_row": [0], "seen": ["x"]}), to="large")

    def header(self, records: pa.RecordBatch) -> pa.RecordBatch:
        headers = pa.array([[{"key": None, "value": b"x"}]], HEADERS)
        return pa.record_batch({"_row": [0], "_headers": headers, "seen": ["x"]})

    def key(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"_row": [0], "_key": ["another"], "seen": ["x"]})


class Both:
    """Has both methods, of which nobody can say which is meant."""

    def process(self, record: ProcessorRecord) -> None:
        """Never called."""

    def process_batch(self, records: pa.RecordBatch) -> None:
        """Never called."""


class ForwardsBatches:
    """Forwards a batch where there is none."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: ProcessorRecord) -> None:
        self.context.forward_batch(pa.record_batch({"_row": [0], "seen": ["x"]}))
