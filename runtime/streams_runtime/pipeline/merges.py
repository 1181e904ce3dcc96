"""Spark's part of a merge of several stages: each stage's rows as they are, with their places."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from streams_runtime.pipeline.decode import RECORD
from streams_runtime.topology.nodes import MergeNode


@dataclass(frozen=True, slots=True)
class ToMerge:
    """Rows of a batch that meet in a merge, of every partition: metadata and columns as expressions see them, places.

    Before the merge those of one stage after the other, behind it in the order of their places.
    """

    node: MergeNode
    rows: pa.Table


def to_merge(rows: DataFrame) -> DataFrame:
    """The rows of one of the inputs."""
    return rows.drop(RECORD)
