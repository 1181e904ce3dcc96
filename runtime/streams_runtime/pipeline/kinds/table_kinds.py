"""Spark's side of tables: of those that streams become, and of those that are worked out change by change.

Of the latter Spark only analyses the expressions; what it computes of a batch its store side asks of it
(processors.contract.SparkSide).
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from streams_runtime.batch.columns import OUT_KEY, OUT_TIME
from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.stage import StageOutput, store_batch_of
from streams_runtime.pipeline.kinds.spark_kind import Collecting, SparkKind
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.pipeline.stages.asked_query import Answer, Query
from streams_runtime.pipeline.stages.stage_frames import Frames, StageFrames
from streams_runtime.pipeline.steps.foreign_key_frames import check_foreign_key_join
from streams_runtime.pipeline.steps.table_rows import check_table_join
from streams_runtime.pipeline.steps.to_table_rows import decoder_of_rows, kept_rows, with_keys_as_bytes
from streams_runtime.pipeline.steps.usable_rows import usable
from streams_runtime.pipeline.steps.written_rows import written
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode, ResponseNode, SubscribeNode
from streams_runtime.topology.nodes.plan_node import PlanNode
from streams_runtime.topology.nodes.table_nodes import TableJoinNode, ToTableNode


class ToTableKind(SparkKind[ToTableNode]):
    """`toTable`: its rows go to its store, and on as rows of a table unless every change of it counts."""

    KEEPS_ROWS = True

    def analysed(self, node: ToTableNode, known: Known) -> DataFrame:
        """The stream's rows, and how they are read from the store."""
        return kept_as_table(node, f"{node.path}.toTable", known.outputs[node.input], known)

    def take(self, node: ToTableNode, given: Frames, stage: StageFrames) -> None:
        """To the store, and on."""
        stage.leave(node, given[node.input])
        if node.name not in stage.traits.over_changes:
            stage.given[node.name] = given[node.input].where(usable(node))

    def query(self, node: ToTableNode, rows: DataFrame, collecting: Collecting) -> Query:
        """Keys and values, with their places."""
        return Query(kept_rows(rows, collecting.headers))

    def collect(self, node: ToTableNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """A batch for the store: keys and values as bytes, with their places."""
        table = with_keys_as_bytes(answer.rows)
        result.dropped[node.name, DropReason.NULL_KEY] += table[OUT_KEY].null_count
        names = [name for name in table.column_names if name not in ("_partition", OUT_KEY, OUT_TIME)]
        result.store_batches.append(store_batch_of(node, table, names))


class TableJoinKind(SparkKind[TableJoinNode]):
    """A join of two tables by their keys."""

    def analysed(self, node: TableJoinNode, known: Known) -> DataFrame:
        """The result's columns."""
        return check_table_join(node, known.outputs[node.input], known.outputs[node.table])


class ForeignKeyJoinKind(SparkKind[ForeignKeyJoinNode]):
    """A join of two tables by a foreign key."""

    def analysed(self, node: ForeignKeyJoinNode, known: Known) -> DataFrame:
        """The result's columns, and how they are read from its store."""
        rows = check_foreign_key_join(node, known.outputs[node.input], known.outputs[node.table])
        return kept_as_table(node, f"{node.path}.join", rows, known)


class SubscribeKind(SparkKind[SubscribeNode]):
    """The subscriptions of such a join, which its store side writes."""

    def analysed(self, node: SubscribeNode, known: Known) -> DataFrame:
        """The table's rows, as JSON."""
        return written(known.outputs[node.input], "json")


class ResponseKind(SparkKind[ResponseNode]):
    """Its answers, which its store side writes."""

    def analysed(self, node: ResponseNode, known: Known) -> DataFrame:
        """The table's rows."""
        return known.outputs[node.input]


def kept_as_table(node: PlanNode, field: str, rows: DataFrame, known: Known) -> DataFrame:
    """The rows of a table, once it is known how they are read from its store, or from what is shown of it.

    Raises InvalidApplicationException at `field`: keys, or columns, have no format for their type.
    """
    with refusing(field):
        decoder = known.decoders[node.name] = decoder_of_rows(rows)
        known.decoded_nothing(decoder)
    return rows
