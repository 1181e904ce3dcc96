"""Spark's part of an aggregate of which every change counts: each record by itself, with its place."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.pipeline.decode import FROM_OFFSET, FROM_TOPIC
from streams_runtime.pipeline.nodes import partials
from streams_runtime.pipeline.to_table import PLACE, further
from streams_runtime.pipeline.windows import ORDER, one_by_one
from streams_runtime.state.aggregates import AggregateState


def change_by_change(state: AggregateState, rows: DataFrame, path: str, several_topics: bool) -> DataFrame:
    """What each record adds to its key: as nodes.partials gives it, with ORDER, the record's place and its headers."""
    turns = one_by_one(rows, several_topics)
    if FROM_TOPIC in rows.columns:
        turns = turns.withColumns({"_topic": F.col(FROM_TOPIC), "_offset": F.col(FROM_OFFSET)})
    beside = [F.any_value(name).alias(name) for name in (*PLACE, *further(rows.columns), "_headers")]
    return partials(state, turns, path, (ORDER,), beside)
