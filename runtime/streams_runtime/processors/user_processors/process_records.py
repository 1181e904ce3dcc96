"""State side of a process step: each task's records in their order, and the rows that it forwards.

Each record that the task reads lets stream time come, whether or not anything of it reaches the step,
as Kafka Streams' PartitionGroup has it. What a punctuator forwards has the place of the record that let its time come,
behind all that comes of that record.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import ORDER_TIME
from streams_runtime.batch.record_order import ordinals_among
from streams_runtime.batch.stage import StageInput
from streams_runtime.errors import IllegalStateException
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.user_processors.declared_types import TIMESTAMP
from streams_runtime.processors.user_processors.forwarded_rows import ForwardedRows, Reads
from streams_runtime.processors.user_processors.processor_task import ProcessorTask, Results, TaskRead
from streams_runtime.processors.user_processors.task_rows import TaskRows
from streams_runtime.state.open_store import processor_store
from streams_runtime.state.processor_class import processor_class
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode
from streams_runtime.topology.whole_streams import is_given_all

_NO_OFFSET = -1
_NOTHING = pa.table(
    {
        "_topic": pa.array([], pa.string()),
        "_partition": pa.array([], pa.int32()),
        "_offset": pa.array([], pa.int64()),
        ORDER_TIME: pa.array([], TIMESTAMP),
    }
)


def apply(given: StageInput, context: ApplyContext) -> Applied:
    """What the tasks forward, and what their stores will hold.

    Of a batch without records it calls what is due by the machine's clock. No rows come to it then: behind a step that
    gives keys, which alone forwards by the clock, its records come through a topic.
    """
    assert isinstance(given.node, ProcessNode)
    node, rows = given.node, TaskRows.of(given.rows)
    reads = {} if context.is_tick else _reads_of(_times(given.rows, context, node), context)
    steps = [each.name for each in context.sub.nodes if isinstance(each, ProcessNode)]
    made, applied = ForwardedRows(node, rows, steps.index(node.name)), Applied()
    for partition in sorted(context.stores):
        task = _task_of(node, partition, context)
        own = rows.by_partition.get(partition, [])
        found: Results | None
        if context.is_tick:
            found = task.punctuate()
            own_reads = Reads([(_any_topic(context), _NO_OFFSET)], [max(task.stream_time, 0) * 1000])
        elif (own_reads := reads.get(partition, Reads())).origins:
            found = task.process(_with_rows(own_reads, rows, own), rows)
        else:
            continue
        if found is None:
            continue
        applied.updates += task.updates()
        made.add(partition, found, own_reads)
    applied.rows = made.table()
    return applied


def _any_topic(context: ApplyContext) -> str:
    """What rows come of that no record has made."""
    return next(node.read_topic for node in context.sub.nodes if node.read_topic is not None)


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


def _reads_of(times: pa.Table, context: ApplyContext) -> dict[int, Reads]:
    """The batch's readable records by partition, in the order in which the task works them off."""
    tables = pa.array([node.topic for node in context.sub.nodes if isinstance(node, TableSourceNode)], pa.string())
    is_table = pc.is_in(times["_topic"], tables)
    parts = [times.filter(is_table), times.filter(pc.invert(is_table))]
    placed = ordinals_among(*((part["_partition"].to_pylist(), part) for part in parts))
    whole = pa.concat_tables(parts)
    columns = [whole["_topic"], whole["_offset"], whole[ORDER_TIME].cast(pa.int64())]
    records = zip(*(column.to_pylist() for column in columns), strict=True)
    in_order = sorted(zip([each for ordinals in placed for each in ordinals], records, strict=True))
    found: dict[int, Reads] = {}
    come_to: dict[tuple[int, str], int] = {}
    for ordinal, (topic, offset, time) in in_order:
        partition = ordinal[0]
        reads = found.setdefault(partition, Reads())
        reads.origins.append((topic, offset))
        come_to[partition, topic] = max(time, come_to.get((partition, topic), time))
        reads.times.append(come_to[partition, topic])
    return found


def _with_rows(reads: Reads, rows: TaskRows, own: Sequence[int]) -> list[TaskRead]:
    """What the task has read, each with the rows that come of it, in their order."""
    found = [TaskRead(number, time // 1000) for number, time in enumerate(reads.times)]
    number_of = {origin: number for number, origin in enumerate(reads.origins)}
    for row in sorted(own, key=lambda row: (rows.elements[row], row)):
        origin = rows.origins[row]
        if origin not in number_of:
            raise IllegalStateException(f"a row of {origin[0]}@{origin[1]}, which is no record of the batch")
        found[number_of[origin]].rows.append(row)
    return found
