"""Spark's part of an aggregate of which every change counts: each record by itself, with its place."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.pipeline.nodes import partials
from streams_runtime.pipeline.to_table import place_of
from streams_runtime.pipeline.windows import ORDER, one_by_one
from streams_runtime.state.aggregates import AggregateState


def change_by_change(state: AggregateState, rows: DataFrame, path: str, several_topics: bool) -> DataFrame:
    """What each record adds to its key: as nodes.partials gives it, with ORDER, the record's place and its headers."""
    beside = [F.any_value(name).alias(name) for name in (*place_of(rows), "_headers")]
    return partials(state, one_by_one(rows, several_topics), path, (ORDER,), beside)
