"""Rows as they go to a topic."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streams_runtime.api.steps.format_names import OF_COLUMNS
from streams_runtime.batch.columns import (
    FROM_OFFSET,
    FROM_TOPIC,
    HIDDEN,
    NULL_VALUE,
    ORDER_TIME,
    ORIGIN,
    OUT_CHOSEN,
    OUT_KEY,
    OUT_ORDER_TIME,
    OUT_PARTITION,
    OUT_TIME,
    OUT_TOPIC,
    OUT_VALUE,
    OUT_WINDOW,
    OUT_WINDOW_END,
    VALUE,
    WINDOW_END,
    WINDOW_START,
)
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.spark_formats import format_of, write_json
from streams_runtime.pipeline.spark.frames import typed_columns, value_columns
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode


def value_of(columns: Iterable[str], value_format: str) -> Column:
    """The value of a frame with these columns as it goes to a topic: JSON, a struct, or the one column."""
    if value_format not in OF_COLUMNS:
        return F.col(VALUE)
    values = [F.col(f"`{name}`") for name in columns if name not in HIDDEN]
    return write_json(values) if value_format == "json" else F.struct(*values)


def written(
    frame: DataFrame, value_format: str, topic_by: str | None = None, partition_by: str | None = None
) -> DataFrame:
    """Rows as they go to a topic: `_key`, `_value` (see `value_of`), `_time` (ms), `_headers`.

    Rows that are windows have its start and end in ms too. With `topic_by` each has its topic (OUT_CHOSEN), and where
    the record was that it came of (ORIGIN); with `partition_by` its partition (OUT_PARTITION).
    """
    columns = [*_written(tuple(frame.columns), value_format), *_placed(partition_by)]
    return frame.select(*columns, *(() if topic_by is None else _chosen(tuple(frame.columns), topic_by)))


@cache
def _placed(partition_by: str | None) -> list[Column]:
    return [] if partition_by is None else [F.expr(partition_by).cast("bigint").alias(OUT_PARTITION)]


@cache
def _chosen(columns: tuple[str, ...], topic_by: str) -> list[Column]:
    topic, offset = (
        F.coalesce(*(F.col(each) for each in names if each in columns))
        for names in (("_topic", FROM_TOPIC), ("_offset", FROM_OFFSET))
    )
    origin = zip((topic, F.col("_partition"), offset), ORIGIN, strict=True)
    return [F.expr(topic_by).alias(OUT_CHOSEN), *(column.alias(name) for column, name in origin)]


def written_in_order(frame: DataFrame, value_format: str, partition_by: str | None = None) -> DataFrame:
    """The same, with what their order goes by (stream_time): the partition and the topic that they came of, and the
    time that they take their turn by (OUT_TURN, ms).
    """
    topic = FROM_TOPIC if FROM_TOPIC in frame.columns else "_topic"
    order_time = F.unix_millis(ORDER_TIME if ORDER_TIME in frame.columns else "_timestamp").alias(OUT_ORDER_TIME)
    columns = [*_written(tuple(frame.columns), value_format), *_placed(partition_by)]
    return frame.select(*columns, "_partition", F.col(topic).alias(OUT_TOPIC), order_time)


@cache
def _written(columns: tuple[str, ...], value_format: str) -> list[Column]:
    window = []
    if WINDOW_START in columns:
        bounds = ((WINDOW_START, OUT_WINDOW), (WINDOW_END, OUT_WINDOW_END))
        window = [F.unix_millis(name).alias(out) for name, out in bounds]
    return [
        *window,
        F.col("_key").alias(OUT_KEY),
        F.when(~F.col(NULL_VALUE), value_of(columns, value_format)).alias(OUT_VALUE),
        F.unix_millis("_timestamp").alias(OUT_TIME),
        F.col("_headers"),
    ]


def sink_format(node: SinkNode, frame: DataFrame) -> str:
    """Name of the format that the sink writes: the declared one, else json.

    Raises:
        InvalidApplicationException: the declared format can't carry the columns.
    """
    declared = "json" if node.value is None else node.value.name
    names = value_columns(frame)
    if declared in OF_COLUMNS:
        return declared
    if names == [VALUE]:
        with refusing(f"{node.path}.value.format"):
            carried = format_of(frame.schema[VALUE].dataType).name
        if carried != declared:
            found = f"the format {declared} is declared, and the column {VALUE} of {node.input} is carried by {carried}"
            mistake = Mistake(f"{node.path}.value.format", found, f"declare {carried}, or cast the column in a select")
            raise InvalidApplicationException([mistake])
    else:
        found = f"the format {declared} carries one column named {VALUE}, and {node.input} has {typed_columns(frame)}"
        raise InvalidApplicationException(
            [Mistake(f"{node.path}.value.format", found, f"use json, or a select with the one column {VALUE}")]
        )
    return declared
