"""Spark's side of a peek: its records pass, and a query over them leaves what it has seen."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from streams_runtime.batch.stage import StageOutput
from streams_runtime.pipeline.kinds.passing_kinds import Checks, PassingKind
from streams_runtime.pipeline.kinds.spark_kind import Collecting
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.spark.refused_expressions import expect_type
from streams_runtime.pipeline.stages.asked_query import Answer, Query
from streams_runtime.pipeline.stages.stage_frames import Frames, StageFrames
from streams_runtime.pipeline.steps.peek_observations import watched
from streams_runtime.topology.nodes.stream_nodes import PeekNode

_NUMBER = ("which can't be added up", "give a number, such as length(…) or cast(… as double)")


class PeekKind(PassingKind[PeekNode]):
    """`peek`."""

    def passed(self, node: PeekNode, rows: DataFrame) -> DataFrame:
        """The same rows."""
        return rows

    def checks(self, node: PeekNode, rows: DataFrame) -> Checks:
        """The text and the number."""
        if node.log is not None:
            yield f"{node.path}.peek.log", partial(rows.select, F.expr(node.log).cast("string"))
        if node.value is not None:
            path = f"{node.path}.peek.value"
            yield path, partial(expect_type, NumericType, rows, node.value, path, _NUMBER)

    def take(self, node: PeekNode, given: Frames, stage: StageFrames) -> None:
        """Where nothing follows that would ask for the rows, they leave Spark here, so that they are seen."""
        rows = given[node.input]
        if stage.peeks is not None:
            stage.peeks[node.name] = Observed()
            rows = watched(node, rows, stage.peeks[node.name])
        stage.given[node.name] = rows
        if not stage.sub.leads_out(node.name):
            stage.leave(node, rows)

    def query(self, node: PeekNode, rows: DataFrame, collecting: Collecting) -> Query:
        """None of the rows: what the peek shows is observed by a query over them."""
        return Query(rows.agg(F.count(F.lit(1))))

    def collect(self, node: PeekNode, answer: Answer, collecting: Collecting, result: StageOutput) -> None:
        """Nothing becomes of the rows."""
