"""Spark's side of what meets stores record by record: joins of streams with tables and streams, and dedupes."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.columns import ID, MATCH, OUT_TIME, RECORD
from streams_runtime.batch.stage import StageInput, StageOutput
from streams_runtime.pipeline.formats.spark_formats import format_of
from streams_runtime.pipeline.kinds.spark_kind import Collecting, LeavingKind, SparkKind
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.pipeline.stages.asked_query import Answer, Query
from streams_runtime.pipeline.stages.stage_frames import Frames, StageFrames
from streams_runtime.pipeline.steps.stream_join_frames import (
    both_sides,
    check_stream_join,
    joined_streams,
    one_side,
    side_format,
)
from streams_runtime.pipeline.steps.table_join_frames import check_join, check_lookup, joined, with_lookup
from streams_runtime.pipeline.steps.usable_rows import left_out, taken
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.stream_join_node import Side, StreamJoinNode


class JoinKind(SparkKind[JoinNode]):
    """A join of a stream with a table."""

    FORWARDS = True

    def analysed(self, node: JoinNode, known: Known) -> DataFrame:
        """What is looked up, then each column by itself."""
        rows = known.outputs[node.input]
        if node.on is not None:
            check_lookup(node, rows, known.outputs[node.table])
        return check_join(node, rows, known.key_format(node.table), known.decoders[node.table].value)

    def take(self, node: JoinNode, given: Frames, stage: StageFrames) -> None:
        """The records, with what each looks up."""
        stage.leave(node, with_lookup(node, given[node.input]))

    def query(self, node: JoinNode, rows: DataFrame, collecting: Collecting) -> Query:
        """The usable records."""
        dropped = Observed()
        return Query(taken(node, rows.drop(RECORD), dropped), {"dropped": dropped})

    def collect(self, node: JoinNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """Records that go on to the store."""
        result.inputs.append(StageInput(node, answer.rows))
        result.dropped += left_out(node, answer.notes["dropped"])

    def learn(self, node: JoinNode, rows: pa.Table, known: Known) -> None:
        """The schemas that the table's rows were written with."""
        known.learn(known.decoders[node.table].value, rows[MATCH])

    def behind(self, node: JoinNode, rows: DataFrame, known: Known) -> DataFrame:
        """The join's result over records with what the table holds beside them (MATCH)."""
        return joined(node, rows, known.decoders[node.table].value)


class StreamJoinKind(SparkKind[StreamJoinNode]):
    """A join of two streams."""

    FORWARDS = True

    def analysed(self, node: StreamJoinNode, known: Known) -> DataFrame:
        """Keys of one type, then each column by itself."""
        return check_stream_join(node, known.outputs[node.input], known.outputs[node.other])

    def take(self, node: StreamJoinNode, given: Frames, stage: StageFrames) -> None:
        """The records of both sides."""
        stage.leave(node, both_sides(given[node.input], given[node.other], stage.keeps_order))

    def take_some(self, node: StreamJoinNode, given: Frames, stage: StageFrames) -> None:
        """The records of either side as they come."""
        for name, side in ((node.input, Side.LEFT), (node.other, Side.RIGHT)):
            if name in given:
                stage.leave(node, one_side(given[name], side, stage.keeps_order))

    def collect(self, node: StreamJoinNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """The records, values as JSON."""
        result.inputs.append(StageInput(node, answer.rows))

    def behind(self, node: StreamJoinNode, rows: DataFrame, known: Known) -> DataFrame:
        """The results as columns again."""
        left, right = (side_format(known.outputs[name]) for name in node.inputs)
        return joined_streams(node, rows, left, right)


class DedupeKind(LeavingKind[DedupeNode]):
    """`dedupe`."""

    FORWARDS = True

    def analysed(self, node: DedupeNode, known: Known) -> DataFrame:
        """The stream's rows; refused where keys have no format for the id's type."""
        rows = known.outputs[node.input]
        with refusing(f"{node.path}.dedupe{'' if node.by is None else '.by'}"):
            format_of(_with_ids(node, rows).schema[ID].dataType)
        return rows.drop(RECORD)

    def query(self, node: DedupeNode, rows: DataFrame, collecting: Collecting) -> Query:
        """The records, each with its id and its time."""
        return Query(_with_ids(node, rows))

    def collect(self, node: DedupeNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """Records that go on to the store."""
        result.inputs.append(StageInput(node, answer.rows))


def _with_ids(node: DedupeNode, rows: DataFrame) -> DataFrame:
    ids = F.col("_key") if node.by is None else F.expr(node.by)
    return rows.drop(RECORD).withColumns({ID: ids, OUT_TIME: F.unix_millis("_timestamp")})
