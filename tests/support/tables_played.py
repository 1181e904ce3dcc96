"""Steps over tables without Spark: stores in memory, Spark's part in plain Python, a first stage's records."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pipeline_kit import Record, json, loaded

from streams_runtime.batch.columns import OUT_VALUE
from streams_runtime.batch.encode import encoded
from streams_runtime.batch.snapshot_columns import RAW_KEY, held_time, held_value, present, time_of, written_to
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.state.shown_values import Shown, as_stored
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.nodes.step_nodes import TransformNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.table_parts import TablePart, table_parts


@dataclass
class Store:
    """A key-value store in memory."""

    held: dict[bytes, bytes] = field(default_factory=dict)

    def get_stored(self, keys: list[bytes]) -> list[bytes | None]:
        return [self.held.get(key) for key in keys]


@dataclass
class OneTask:
    """A task of one partition, and of stores that are there once they are asked for."""

    stores: defaultdict[str, Store] = field(default_factory=lambda: defaultdict(Store))


class PlayedRunner:
    """Spark's part in plain Python: where is "not divisible by 3", select doubles, join is ten times left and right."""

    def shown_by(self, table: str) -> Shown:
        return as_stored

    def sink_keys(self, sink: SinkNode, column: pa.ChunkedArray) -> list[bytes | None]:
        return encoded(column)

    sink_values = sink_keys

    def tables(self, part: TablePart, snapshots: pa.Table) -> pa.Table:
        rows: list[list[Any]] = []
        for index in range(len(part.copies.sources)):
            times = snapshots[held_time(index)].cast(pa.int64()).to_pylist()
            held = zip(snapshots[held_value(index)].to_pylist(), times, strict=True)
            rows.append([None if value is None else (loaded(value), time // 1000) for value, time in held])
        for copy in part.copies.steps:
            step, inputs = copy.node, [rows[number] for number in copy.inputs]
            if isinstance(step, TransformNode):
                rows.append([self._transformed(step, row) for row in inputs[0]])
            else:
                rows.append([self._joined(step.type, *pair) for pair in zip(*inputs, strict=True)])
        answer = {"_key": snapshots[RAW_KEY]}
        for index, of_table in enumerate(rows):
            answer[present(index)] = pa.chunked_array([[row is not None for row in of_table]])
            times = [None if row is None else row[1] for row in of_table]
            answer[time_of(index)] = pa.chunked_array([times], pa.int64())
        for index, sink in enumerate(part.sinks):
            values = [None if row is None else json(v=row[0]) for row in rows[part.copies.first[sink.input]]]
            answer[written_to(index)] = pa.chunked_array([values], pa.binary())
        return pa.table(answer)

    @staticmethod
    def _transformed(step: TransformNode, row: Any) -> Any:
        if row is None or (step.where is not None and row[0] % 3 == 0):
            return None
        return row if step.where is not None else (row[0] * 2, row[1])

    @staticmethod
    def _joined(kind: str, left: Any, right: Any) -> Any:
        if (left is None and kind != "outer") or (right is None and kind == "inner") or left is right is None:
            return None
        number = (left[0] if left else 0) * 10 + (right[0] if right else 0)
        return number, max(row[1] for row in (left, right) if row is not None)


def keyed(sub: SubTopology, records: list[Record]) -> dict[str, StoreBatch]:
    """The records by the source that reads them, as the first stage gives them."""
    found = {}
    for part in table_parts(sub):
        for source in part.sources:
            rows = [each for each in records if each.topic == source.topic]
            times = pa.array([each.time for each in rows], pa.int64())
            columns = {
                OUT_VALUE: pa.array([each.value for each in rows], pa.binary()),
                "_topic": pa.array([each.topic for each in rows], pa.string()),
                "_offset": pa.array([each.offset for each in rows], pa.int64()),
                "_timestamp": pa.array([each.time * 1000 for each in rows], pa.timestamp("us", tz="UTC")),
                "_headers": pa.array([each.headers for each in rows], pa.list_(pa.struct([]))),
            }
            keys, partitions = [each.key for each in rows], [each.partition for each in rows]
            made = (pa.chunked_array([pa.array(each)]) for each in (partitions, pa.array(keys, pa.binary()), times))
            found[source.name] = StoreBatch(source, *made, pa.table(columns))
    return found
