"""What a scan takes over of a first stage: what each of its sources gives, and where that goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import ORDER_TIME, OUT_VALUE
from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.read_accounts import Account
from streams_runtime.batch.stage import StageInput, StageOutput, store_batch_of
from streams_runtime.batch.stream_times import put_off
from streams_runtime.pipeline.pushdown.partial_columns import Stage, fits_with, together
from streams_runtime.pipeline.pushdown.scanned_records import PARTITION, Answer
from streams_runtime.pipeline.pushdown.single_rows import RowStage, TableStage
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSourceNode, SourceNode, TableSourceNode

NONE_READ = pa.schema(
    [
        ("_topic", pa.string()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        (ORDER_TIME, pa.timestamp("us", tz="UTC")),
    ]
).empty_table()
"""No records that Spark could read."""


@dataclass(frozen=True, slots=True)
class ToAggregate:
    """Records of a source become partial aggregates; `schema` is that of Spark's, `columns` are those of the state."""

    source: SourceNode | RepartitionSourceNode
    node: AggregateNode
    stage: Stage
    schema: pa.Schema
    columns: Sequence[str]

    def put(self, result: StageOutput, answer: Answer, sparks: StageOutput | None, _read: pa.Table) -> bool:
        """Add what the answer has, and Spark of the records that were left to it, to the result.

        False where a sum of the two may leave its range: then Spark, which raises an error at that, does all of it.
        """
        theirs = [] if sparks is None else [each.table for each in sparks.store_batches if each.node is self.node]
        both = [each for each in (answer.made, *theirs) if each.num_rows]
        both = [each.select(self.schema.names).cast(self.schema) for each in both]
        if len(both) > 1 and not fits_with(both[1], self.stage.plan.aggregates):
            return False
        made = together(both, self.stage).select(self.schema.names).cast(self.schema) if both else None
        partials = self.schema.empty_table() if made is None else made
        result.store_batches.append(store_batch_of(self.node, partials, list(self.columns)))
        return True


@dataclass(frozen=True, slots=True)
class ToTable:
    """Records of a table's source become the table's changes."""

    source: TableSourceNode
    stage: TableStage

    @property
    def node(self) -> TableSourceNode:
        """The node that takes them."""
        return self.source

    def put(self, result: StageOutput, answer: Answer, sparks: StageOutput | None, read: pa.Table) -> bool:
        """Add what the answer has, and Spark of the records that were left to it, to the result.

        `read` are the records that Spark could read, where turns are taken: topic, partition, offset and time (TURN).
        """
        theirs = [] if sparks is None else [each.table for each in sparks.store_batches if each.node is self.source]
        rows = _in_order(self.stage, answer, theirs, read)
        names = rows.column_names
        result.store_batches.append(store_batch_of(self.source, rows, names[names.index(OUT_VALUE) :]))
        return True


@dataclass(frozen=True, slots=True)
class ToMatch:
    """Records of a stream go on to a join with a table."""

    source: SourceNode | RepartitionSourceNode
    node: JoinNode
    stage: RowStage

    def put(self, result: StageOutput, answer: Answer, sparks: StageOutput | None, read: pa.Table) -> bool:
        """Add what the answer has, and Spark of the records that were left to it, to the result.

        `read` are the records that Spark could read, where turns are taken: topic, partition, offset and time (TURN).
        """
        theirs = [] if sparks is None else [each.rows for each in sparks.inputs if each.node is self.node]
        result.inputs.append(StageInput(self.node, _in_order(self.stage, answer, theirs, read)))
        return True


TakenOver = ToAggregate | ToTable | ToMatch


def add_answers(
    over: Sequence[TakenOver],
    answers: Sequence[Answer],
    result: StageOutput,
    sparks: StageOutput | None = None,
    read: pa.Table | None = None,
) -> bool:
    """Add what the scan answers to the result, which has what Spark accounts for; `sparks` and `read` as for `put`.

    False where Spark has to do all of the batch.
    """
    for each, answer in zip(over, answers, strict=True):
        account = result.accounts.get(each.source.name, Account(0, 0, None))
        result.accounts[each.source.name] = account.with_more(answer.records, answer.times)
        result.dropped[each.node.name, DropReason.NULL_KEY] += answer.dropped
        result.late[each.node.name] += answer.late
        if not each.put(result, answer, sparks, NONE_READ if read is None else read):
            return False
    return True


def _in_order(stage: RowStage | TableStage, answer: Answer, theirs: Sequence[pa.Table], read: pa.Table) -> pa.Table:
    """The rows of one topic in the order of its partitions' records, each with its turn by all of them."""
    schema = stage.schema
    filled = [each.select(schema.names).cast(schema) for each in (answer.made, *theirs) if each.num_rows]
    if ORDER_TIME in schema.names and answer.left.num_rows:
        left = answer.left.select(["partition", "offset", ORDER_TIME]).rename_columns(
            ["_partition", "_offset", ORDER_TIME]
        )
        of_topic = read.filter(pc.equal(read["_topic"], answer.left["topic"][0]))
        filled = [put_off(put_off(each, left), of_topic) for each in filled]
    rows = pa.concat_tables([schema.empty_table(), *filled])
    return rows.sort_by([(PARTITION, "ascending"), ("_offset", "ascending")]) if len(filled) > 1 else rows
