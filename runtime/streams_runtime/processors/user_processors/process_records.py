"""State side of a process step: each task's records in their order, and the rows that it forwards.

Each record that the task reads lets stream time come, whether or not anything of it reaches the step,
as Kafka Streams' PartitionGroup has it. What a punctuator forwards has the place of the record that let its time come,
behind all that comes of that record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import BRANCH, ELEMENT, FROM_OFFSET, FROM_TOPIC, HIDDEN, NULL_VALUE, ORDER_TIME
from streams_runtime.batch.record_order import fork_paths_of, ordinals_among
from streams_runtime.batch.rows import moments
from streams_runtime.batch.stage import StageInput
from streams_runtime.errors import IllegalStateException
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.user_processors.declared_types import TIMESTAMP, columns_type, key_type
from streams_runtime.processors.user_processors.processor_records import ProcessorRecord, RecordMetadata
from streams_runtime.processors.user_processors.processor_task import Given, ProcessorTask, Result, TaskRead
from streams_runtime.state.open_store import processor_store
from streams_runtime.state.processor_class import processor_class
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode
from streams_runtime.topology.whole_streams import is_given_all

PUNCTUATED = 2**31 - 1
"""In ELEMENT: behind everything that comes of the record itself, whichever path it goes.

Behind it come, as numbers of 31 bits, when the punctuator was due and which process step has it: a task of Kafka
Streams has one PunctuationQueue for all of its processors.
"""
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_NO_OFFSET = -1
_NOTHING = pa.table(
    {
        "_topic": pa.array([], pa.string()),
        "_partition": pa.array([], pa.int32()),
        "_offset": pa.array([], pa.int64()),
        ORDER_TIME: pa.array([], TIMESTAMP),
    }
)
_BITS = 31

Origin = tuple[str, int]
"""Topic and offset of a record."""


@dataclass(frozen=True, slots=True)
class _Reads:
    """The records that a task has read, in their order: where each was, and to which time (µs) its topic has come."""

    origins: list[Origin] = field(default_factory=list)
    times: list[int] = field(default_factory=list)


def apply(given: StageInput, context: ApplyContext) -> Applied:
    """What the tasks forward, and what their stores will hold.

    Of a batch without records it calls what is due by the machine's clock. No rows come to it then: behind a step that
    gives keys, which alone forwards by the clock, its records come through a topic.
    """
    assert isinstance(given.node, ProcessNode)
    node, rows = given.node, _Rows.of(given.rows)
    reads = {} if context.is_tick else _reads_of(_times(given.rows, context, node), context)
    steps = [each.name for each in context.sub.nodes if isinstance(each, ProcessNode)]
    made, applied = _Made(node, rows, steps.index(node.name)), Applied()
    for partition in sorted(context.stores):
        task = _task_of(node, partition, context)
        own = rows.by_partition.get(partition, [])
        if context.is_tick:
            found = task.punctuate()
            own_reads = _Reads([(context.sub.source_topics[0], _NO_OFFSET)], [max(task.stream_time, 0) * 1000])
        elif (own_reads := reads.get(partition, _Reads())).origins:
            found = task.process(_with_rows(own_reads, rows, own))
        else:
            continue
        if found is None:
            continue
        applied.updates += task.updates()
        made.add(partition, found, own_reads)
    applied.rows = made.table()
    return applied


def has_due(node: ProcessNode, context: ApplyContext) -> bool:
    """Whether a task has anything due by the machine's clock; tasks that have no object yet get theirs.

    Raises UserCodeException: the class can't be made, or its init failed.
    """
    due = [_task_of(node, partition, context).is_due() for partition in sorted(context.stores)]
    return any(due)


def _task_of(node: ProcessNode, partition: int, context: ApplyContext) -> ProcessorTask:
    tasks = context.processors[partition]
    if node.name not in tasks:
        names = (*(store.name for store in node.stores), node.progress_store)
        stores = {name: processor_store(context.stores[partition], name) for name in names}
        described = processor_class(node.reference)
        tasks[node.name] = ProcessorTask(node, described, f"{context.sub.id}_{partition}", stores, context.clock)
    return tasks[node.name]


def _times(rows: pa.Table, context: ApplyContext, node: ProcessNode) -> pa.Table:
    """Where the batch's readable records are, and when: asked of Spark only where the rows do not tell."""
    if not is_given_all(context.sub, node.name):
        return context.spark.record_times()
    if not rows.num_rows:
        return _NOTHING
    time = rows[ORDER_TIME if ORDER_TIME in rows.column_names else "_timestamp"].cast(TIMESTAMP)
    return rows.select(["_topic", "_partition", "_offset"]).append_column(ORDER_TIME, time)


def _reads_of(times: pa.Table, context: ApplyContext) -> dict[int, _Reads]:
    """The batch's readable records by partition, in the order in which the task works them off."""
    tables = pa.array([node.topic for node in context.sub.nodes if isinstance(node, TableSourceNode)], pa.string())
    is_table = pc.is_in(times["_topic"], tables)
    parts = [times.filter(is_table), times.filter(pc.invert(is_table))]
    placed = ordinals_among(*((part["_partition"].to_pylist(), part) for part in parts))
    whole = pa.concat_tables(parts)
    columns = [whole["_topic"], whole["_offset"], whole[ORDER_TIME].cast(pa.int64())]
    records = zip(*(column.to_pylist() for column in columns), strict=True)
    in_order = sorted(zip([each for ordinals in placed for each in ordinals], records, strict=True))
    found: dict[int, _Reads] = {}
    come_to: dict[tuple[int, str], int] = {}
    for ordinal, (topic, offset, time) in in_order:
        partition = ordinal[0]
        reads = found.setdefault(partition, _Reads())
        reads.origins.append((topic, offset))
        come_to[partition, topic] = max(time, come_to.get((partition, topic), time))
        reads.times.append(come_to[partition, topic])
    return found


def _with_rows(reads: _Reads, rows: _Rows, own: Sequence[int]) -> list[TaskRead]:
    """What the task has read, each with the rows that come of it, in their order."""
    found = [TaskRead(number, time // 1000) for number, time in enumerate(reads.times)]
    number_of = {origin: number for number, origin in enumerate(reads.origins)}
    for row in sorted(own, key=lambda row: (rows.elements[row], row)):
        origin = rows.origins[row]
        if origin not in number_of:
            raise IllegalStateException(f"a row of {origin[0]}@{origin[1]}, which is no record of the batch")
        found[number_of[origin]].records.append(rows.given(row))
    return found


@dataclass(frozen=True, slots=True)
class _Rows:
    """A batch's rows that reach the step, as Python has them."""

    table: pa.Table
    records: list[ProcessorRecord]
    partitions: list[int]
    origins: list[Origin]
    elements: list[list[int]]
    by_partition: Mapping[int, list[int]]

    @classmethod
    def of(cls, table: pa.Table) -> _Rows:
        """Of a stage's rows; of none, with no columns either, where nothing has come."""
        if not table.num_rows:
            return cls(table, [], [], [], [], {})
        topic, offset = (FROM_TOPIC, FROM_OFFSET) if FROM_TOPIC in table.column_names else ("_topic", "_offset")
        origins = list(zip(table[topic].to_pylist(), table[offset].to_pylist(), strict=True))
        partitions = table["_partition"].to_pylist()
        by_partition: dict[int, list[int]] = {}
        for row, partition in enumerate(partitions):
            by_partition.setdefault(partition, []).append(row)
        return cls(table, _records(table), partitions, origins, fork_paths_of(table), by_partition)

    def given(self, row: int) -> Given:
        """A row as its processor is given it."""
        topic, offset = self.origins[row]
        return Given(row, self.records[row], RecordMetadata(topic, self.partitions[row], offset))


def _records(table: pa.Table) -> list[ProcessorRecord]:
    names = [name for name in table.column_names if name not in HIDDEN]
    values = table.select(names).to_pylist() if names else [{}] * table.num_rows
    times = table["_timestamp"].cast(TIMESTAMP).cast(pa.int64()).to_pylist()
    columns = (table["_key"], table[NULL_VALUE], table["_headers"])
    parts = zip(*(column.to_pylist() for column in columns), values, times, strict=True)
    return [
        ProcessorRecord(
            key,
            None if is_null else value,
            time // 1000,
            tuple((header["key"], header["value"]) for header in headers or ()),
        )
        for key, is_null, headers, value, time in parts
    ]


@dataclass(slots=True)
class _Made:
    """The rows that are forwarded, as they come to be.

    `step` is the number of the node among the process steps of its sub-topology.
    """

    node: ProcessNode
    rows: _Rows
    step: int
    results: list[Result] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    elements: list[list[int]] = field(default_factory=list)
    origins: list[tuple[str, int, int]] = field(default_factory=list)

    def add(self, partition: int, results: Sequence[Result], reads: _Reads) -> None:
        """What one task has forwarded."""
        numbers: dict[tuple[int, int | None], int] = {}
        for each in results:
            of = (each.read, each.row)
            number = numbers[of] = numbers.get(of, -1) + 1
            path = self._behind_record(each.due) if each.row is None else self.rows.elements[each.row]
            self.elements.append([*path, number])
            self.partitions.append(partition)
            self.origins.append((*reads.origins[each.read], reads.times[each.read]))
            self.results.append(each)

    def _behind_record(self, due: int) -> list[int]:
        return [PUNCTUATED, due >> _BITS, due & (1 << _BITS) - 1, self.step]

    def table(self) -> pa.Table:
        """As the steps behind take them: metadata, what orders them, columns."""
        values = columns_type(self.node.value)
        records = [each.record for each in self.results]
        times = pa.array([each.timestamp for each in records], pa.int64())
        headers = [
            [{"key": name, "value": value} for name, value in each.headers] if each.headers else None
            for each in records
        ]
        metadata: dict[str, Any] = {
            "_key": self._keys(),
            "_timestamp": moments(times),
            "_topic": self._own("_topic", pa.string(), 0),
            "_partition": pa.array(self.partitions, pa.int32()),
            "_offset": self._own("_offset", pa.int64(), 1),
            "_headers": pa.array(headers, _HEADERS),
            NULL_VALUE: pa.array([each.value is None for each in records], pa.bool_()),
            ELEMENT: pa.array(self.elements, pa.list_(pa.int32())),
            # What is forwarded may have any time, and has the turn of its record all the same.
            ORDER_TIME: pa.array([time for _, _, time in self.origins], TIMESTAMP),
        }
        given = self.rows.table.column_names
        if FROM_TOPIC in given:
            metadata |= {FROM_TOPIC: self._own(FROM_TOPIC, pa.string(), 0)}
            metadata |= {FROM_OFFSET: self._own(FROM_OFFSET, pa.int64(), 1)}
        if self.node.outputs:
            metadata[BRANCH] = pa.array([each.output for each in records], pa.int32())
        nothing = pa.nulls(1, values)
        structs = [nothing if each.value is None else each.value for each in records]
        whole = pa.concat_arrays(structs) if structs else pa.array([], values)
        columns = {column.name: pc.struct_field(whole, [number]) for number, column in enumerate(values)}
        return pa.table(metadata | columns)

    def _keys(self) -> pa.Array:
        if self.node.key is not None:
            keys = [each.record.key for each in self.results]
            return pa.concat_arrays(keys) if keys else pa.array([], key_type(self.node.key))
        if not self.results:  # none is to be had without a row, whose key it has
            return pa.nulls(0)
        return self.rows.table["_key"].combine_chunks().take(pa.array([each.row for each in self.results], pa.int64()))

    def _own(self, name: str, kind: pa.DataType, part: int) -> pa.Array:
        """What a row has that was forwarded for another one; behind a punctuator that of the record before it."""
        table = self.rows.table
        own = [] if not len(table) else table[name].to_pylist()
        found = [self.origins[at][part] if each.row is None else own[each.row] for at, each in enumerate(self.results)]
        return pa.array(found, kind)
