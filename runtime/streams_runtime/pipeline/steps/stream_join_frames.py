"""Spark's part of a join of two streams: both sides' records as rows with JSON values, and results as columns again."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streams_runtime.batch.columns import (
    ELEMENT,
    FROM_OFFSET,
    FROM_TOPIC,
    LEFT,
    METADATA,
    NULL_VALUE,
    ORDER_TIME,
    OUT_TIME,
    OUT_VALUE,
    RIGHT,
    SIDE,
)
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.spark_formats import content, ddl_of, format_of, parsed, write_json
from streams_runtime.pipeline.spark.frames import value_columns
from streams_runtime.pipeline.spark.refused_expressions import columns_refused, refusing
from streams_runtime.pipeline.windowing.record_ordinals import ordinal_columns
from streams_runtime.topology.nodes.source_and_sink_nodes import Format
from streams_runtime.topology.nodes.stream_join_node import Side, StreamJoinNode

_PARSED_LEFT = "_parsed_left"
_PARSED_RIGHT = "_parsed_right"


def both_sides(left: DataFrame, right: DataFrame, keeps_order: bool) -> DataFrame:
    """Each record of both: metadata, time in ms, side, and its columns as JSON, null where it has no value.

    With the places that a sub-topology may keep (see record_ordinals).
    """
    sides = one_side(left, Side.LEFT, keeps_order), one_side(right, Side.RIGHT, keeps_order)
    return sides[0].unionByName(sides[1])


def joined_streams(node: StreamJoinNode, rows: DataFrame, left: Format, right: Format) -> DataFrame:
    """The join's results: metadata and `_null`, then the left record's columns and those of `select`.

    `rows` have metadata, `_null`, LEFT and RIGHT; the formats are those of the two (`side_format`).
    """
    beside = _beside(node, rows, left, right)
    added = dict(node.select)
    kept = [F.col(f"`{name}`") for name in beside.columns if name not in (*added, node.stream)]
    return beside.select(*kept, *(F.expr(expression).alias(name) for name, expression in added.items()))


def side_format(side: DataFrame) -> Format:
    """How the values of a side's records are kept."""
    return Format("json", ddl_of(StructType([side.schema[name] for name in value_columns(side)])))


def check_stream_join(node: StreamJoinNode, left: DataFrame, right: DataFrame) -> DataFrame:
    """Analyse a join over no records, each column by itself; its result.

    Raises:
        InvalidApplicationException: keys of two types, and the columns that Spark's analysis refuses; all of them.
    """
    mistakes = []
    with refusing(f"{node.path}.join"):
        mine, theirs = (format_of(each.schema["_key"].dataType) for each in (left, right))
    if mine != theirs:
        found = f"the keys of {node.input} are {mine.name}, those of {node.stream} {theirs.name}"
        mistakes.append(Mistake(f"{node.path}.join.stream", found, "put a keyBy before the join that gives one type"))
    empty = left.select(*METADATA, NULL_VALUE).withColumns({name: F.lit(None).cast("string") for name in (LEFT, RIGHT)})
    formats = side_format(left), side_format(right)
    mistakes += columns_refused(_beside(node, empty, *formats), node.select, f"{node.path}.join.select")
    if mistakes:
        raise InvalidApplicationException(mistakes)
    return joined_streams(node, empty, *formats)


def one_side(frame: DataFrame, side: Side, keeps_order: bool) -> DataFrame:
    """The same of one side."""
    value = write_json([F.col(f"`{name}`") for name in value_columns(frame)])
    return frame.select(
        *METADATA,
        F.unix_millis("_timestamp").alias(OUT_TIME),
        F.when(~F.col(NULL_VALUE), value).alias(OUT_VALUE),
        F.lit(int(side)).alias(SIDE),
        *(ordinal_columns(frame) if keeps_order else [F.col(ORDER_TIME)] if ORDER_TIME in frame.columns else []),
    )


def _beside(node: StreamJoinNode, rows: DataFrame, left: Format, right: Format) -> DataFrame:
    """The left record's columns, and the right one's as a struct under its stream's name."""
    both = {_PARSED_LEFT: parsed(F.col(LEFT), left), _PARSED_RIGHT: parsed(F.col(RIGHT), right)}
    frame = rows.withColumns(both)
    mine = content(F.col(_PARSED_LEFT), left)
    kind = frame.select(mine.alias("x")).schema["x"].dataType
    assert isinstance(kind, StructType)
    return frame.select(
        *METADATA,
        NULL_VALUE,
        *(name for name in (FROM_TOPIC, FROM_OFFSET, ORDER_TIME, ELEMENT) if name in rows.columns),
        *(mine[name].alias(name) for name in kind.fieldNames()),
        content(F.col(_PARSED_RIGHT), right).alias(node.stream),
    )
