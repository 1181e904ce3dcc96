"""Spark's part of a dedupe: records as they are, each with its id and its time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.pipeline.decode import RECORD
from streams_runtime.pipeline.formats import format_of
from streams_runtime.pipeline.nodes import OUT_TIME
from streams_runtime.pipeline.refusing import refusing
from streams_runtime.topology.dedupe import DedupeNode

ID = "_id"


@dataclass(frozen=True, slots=True)
class ToDedupe:
    """Records of a batch, of every partition: metadata and columns as expressions see them.

    Before the dedupe each has its ID and OUT_TIME (ms) too, behind it neither.
    """

    node: DedupeNode
    rows: pa.Table


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
