"""Spark's side of tables grouped by another key, whose changes are worked out one by one."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streams_runtime.pipeline.kinds.spark_kind import SparkKind
from streams_runtime.pipeline.known import Known
from streams_runtime.pipeline.steps.regrouped_rows import check_regrouping
from streams_runtime.topology.nodes.regroup_node import RegroupNode


class RegroupKind(SparkKind[RegroupNode]):
    """An aggregate's `groupBy`: Spark only analyses it; table_changes asks for what it computes of a batch."""

    def analysed(self, node: RegroupNode, known: Known) -> DataFrame:
        """The records of its repartition topic."""
        return check_regrouping(node, known.outputs[node.input])
