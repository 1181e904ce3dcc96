"""Spark's part of a merge of several stages: each stage's rows as they are, with their places."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streams_runtime.batch.columns import RECORD


def to_merge(rows: DataFrame) -> DataFrame:
    """The rows of one of the inputs."""
    return rows.drop(RECORD)
