"""Spark's part of a dedupe: records as they are, each with its id and its time."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.columns import ID, OUT_TIME, RECORD
from streams_runtime.pipeline.formats.spark_formats import format_of
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.topology.nodes.dedupe_node import DedupeNode


def with_ids(node: DedupeNode, frame: DataFrame) -> DataFrame:
    """The rows that reach the dedupe, with ID and OUT_TIME."""
    ids = F.col("_key") if node.by is None else F.expr(node.by)
    return frame.drop(RECORD).withColumns({ID: ids, OUT_TIME: F.unix_millis("_timestamp")})


def check_dedupe(node: DedupeNode, frame: DataFrame) -> DataFrame:
    """Analyse a dedupe over no records; its result.

    Raises:
        InvalidApplicationException: Spark's analysis refuses the id, or keys have no format for its type.
    """
    with refusing(f"{node.path}.dedupe{'' if node.by is None else '.by'}"):
        format_of(with_ids(node, frame).schema[ID].dataType)
    return frame.drop(RECORD)
