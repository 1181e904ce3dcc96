"""The rows that process steps forward, as the steps behind them take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import BRANCH, ELEMENT, FROM_OFFSET, FROM_TOPIC, NULL_VALUE, ORDER_TIME
from streams_runtime.batch.rows import moments
from streams_runtime.processors.user_processors.declared_types import TIMESTAMP, columns_type, key_type
from streams_runtime.processors.user_processors.processor_call import Forwarded
from streams_runtime.processors.user_processors.processor_task import BatchResult, Result
from streams_runtime.processors.user_processors.record_batches import HEADERS_TYPE
from streams_runtime.processors.user_processors.task_rows import TaskRows
from streams_runtime.topology.nodes.process_node import ProcessNode

PUNCTUATED = 2**31 - 1
"""In ELEMENT: behind everything that comes of the record itself, whichever path it goes.

Behind it come, as numbers of 31 bits, when the punctuator was due and which process step has it: a task of Kafka
Streams has one PunctuationQueue for all of its processors.
"""
_BITS = 31

Origin = tuple[str, int]
"""Topic and offset of a record."""


@dataclass(frozen=True, slots=True)
class Reads:
    """The records that a task has read, in their order: where each was, and to which time (µs) its topic has come."""

    origins: list[Origin] = field(default_factory=list)
    times: list[int] = field(default_factory=list)


@dataclass(slots=True)
class ForwardedRows:
    """The rows that are forwarded, as they come to be.

    `step` is the number of the node among the process steps of its sub-topology.
    """

    node: ProcessNode
    rows: TaskRows
    step: int
    _of: list[int | None] = field(default_factory=list)
    """The row that each was forwarded for; None: by a punctuator."""
    _partitions: list[int] = field(default_factory=list)
    _elements: list[list[int]] = field(default_factory=list)
    _origins: list[tuple[str, int, int]] = field(default_factory=list)
    _keys: list[pa.Array] = field(default_factory=list)
    _values: list[pa.Array] = field(default_factory=list)
    _timestamps: list[pa.Array] = field(default_factory=list)
    _headers: list[pa.Array] = field(default_factory=list)
    _outputs: list[pa.Array] = field(default_factory=list)

    def add(self, partition: int, results: Sequence[Result | BatchResult], reads: Reads) -> None:
        """What one task has forwarded."""
        numbers: dict[tuple[int, int | None], int] = {}
        for kind, found in groupby(results, type):
            if kind is BatchResult:
                for batch in found:
                    assert isinstance(batch, BatchResult)
                    for read, row in zip(batch.reads, batch.rows, strict=True):
                        self._place(partition, read, row, self.rows.elements[row], reads, numbers)
                    self._add_columns(batch)
                continue
            singles = [each for each in found if isinstance(each, Result)]
            for each in singles:
                path = self._behind_record(each.due) if each.row is None else self.rows.elements[each.row]
                self._place(partition, each.read, each.row, path, reads, numbers)
            self._add_records([each.record for each in singles])

    def _place(
        self,
        partition: int,
        read: int,
        row: int | None,
        path: Sequence[int],
        reads: Reads,
        numbers: dict[tuple[int, int | None], int],
    ) -> None:
        of = (read, row)
        number = numbers[of] = numbers.get(of, -1) + 1
        self._elements.append([*path, number])
        self._partitions.append(partition)
        self._origins.append((*reads.origins[read], reads.times[read]))
        self._of.append(row)

    def _behind_record(self, due: int) -> list[int]:
        return [PUNCTUATED, due >> _BITS, due & (1 << _BITS) - 1, self.step]

    def _add_columns(self, result: BatchResult) -> None:
        batch = result.batch
        self._keys += [] if batch.keys is None else [batch.keys]
        self._values.append(batch.values)
        self._timestamps.append(batch.timestamps)
        self._headers.append(batch.headers)
        self._outputs.append(batch.outputs)

    def _add_records(self, records: Sequence[Forwarded]) -> None:
        nothing = pa.nulls(1, columns_type(self.node.value))
        headers = [
            [{"key": name, "value": value} for name, value in each.headers] if each.headers else None
            for each in records
        ]
        self._keys += [each.key for each in records if each.key is not None]
        self._values += [nothing if each.value is None else each.value for each in records]
        self._timestamps.append(pa.array([each.timestamp for each in records], pa.int64()))
        self._headers.append(pa.array(headers, HEADERS_TYPE))
        self._outputs.append(pa.array([each.output for each in records], pa.int32()))

    def table(self) -> pa.Table:
        """As the steps behind take them: metadata, what orders them, columns."""
        values = columns_type(self.node.value)
        whole = _whole(self._values, values)
        metadata: dict[str, Any] = {
            "_key": self._key_column(),
            "_timestamp": moments(_whole(self._timestamps, pa.int64())),
            "_topic": self._own("_topic", pa.string(), 0),
            "_partition": pa.array(self._partitions, pa.int32()),
            "_offset": self._own("_offset", pa.int64(), 1),
            "_headers": _whole(self._headers, HEADERS_TYPE),
            NULL_VALUE: pc.is_null(whole),
            ELEMENT: pa.array(self._elements, pa.list_(pa.int32())),
            # What is forwarded may have any time, and has the turn of its record all the same.
            ORDER_TIME: pa.array([time for _, _, time in self._origins], TIMESTAMP),
        }
        given = self.rows.table.column_names
        if FROM_TOPIC in given:
            metadata |= {FROM_TOPIC: self._own(FROM_TOPIC, pa.string(), 0)}
            metadata |= {FROM_OFFSET: self._own(FROM_OFFSET, pa.int64(), 1)}
        if self.node.outputs:
            metadata[BRANCH] = _whole(self._outputs, pa.int32())
        columns = {column.name: pc.struct_field(whole, [number]) for number, column in enumerate(values)}
        return pa.table(metadata | columns)

    def _key_column(self) -> pa.Array:
        if self.node.key is not None:
            return _whole(self._keys, key_type(self.node.key))
        if not self._of:  # none is to be had without a row, whose key it has
            return pa.nulls(0)
        return self.rows.table["_key"].combine_chunks().take(pa.array(self._of, pa.int64()))

    def _own(self, name: str, kind: pa.DataType, part: int) -> pa.Array:
        """What a row has that was forwarded for another one; behind a punctuator that of the record before it."""
        table = self.rows.table
        own = [] if not len(table) else table[name].to_pylist()
        found = [self._origins[at][part] if row is None else own[row] for at, row in enumerate(self._of)]
        return pa.array(found, kind)


def _whole(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays(parts) if parts else pa.array([], kind)
