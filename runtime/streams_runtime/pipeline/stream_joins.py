"""Spark's part of a join of two streams: both sides' records as rows with JSON values, and results as columns again."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.decode import FROM_OFFSET, FROM_TOPIC, METADATA, NULL_VALUE, TURN
from streams_runtime.pipeline.formats import content, ddl_of, format_of, parsed, write_json
from streams_runtime.pipeline.nodes import OUT_TIME, OUT_VALUE, value_columns
from streams_runtime.pipeline.refusing import columns_refused, refusing
from streams_runtime.pipeline.stream_nodes import ELEMENT
from streams_runtime.pipeline.ways import place_columns
from streams_runtime.topology.nodes import Format
from streams_runtime.topology.stream_joins import Side, StreamJoinNode

SIDE = "_side"  # a topology.stream_joins.Side
LEFT, RIGHT = "_left", "_right"  # JSON of both records of a result; null where there is none
_PARSED_LEFT = "_parsed_left"
_PARSED_RIGHT = "_parsed_right"


@dataclass(frozen=True, slots=True)
class StreamsToJoin:
    """Records of both sides of a join, of every partition: each side's in their order.

    Before the join the rows are those of `both_sides`, behind it those that `joined_streams` takes.
    """

    node: StreamJoinNode
    rows: pa.Table


def both_sides(left: DataFrame, right: DataFrame, keeps_places: bool) -> DataFrame:
    """Each record of both: metadata, time in ms, side, and its columns as JSON, null where it has no value.

    With the places that a sub-topology may keep (see ways).
    """
    sides = one_side(left, Side.LEFT, keeps_places), one_side(right, Side.RIGHT, keeps_places)
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


def one_side(frame: DataFrame, side: Side, keeps_places: bool) -> DataFrame:
    """The same of one side."""
    value = write_json([F.col(f"`{name}`") for name in value_columns(frame)])
    return frame.select(
        *METADATA,
        F.unix_millis("_timestamp").alias(OUT_TIME),
        F.when(~F.col(NULL_VALUE), value).alias(OUT_VALUE),
        F.lit(int(side)).alias(SIDE),
        *(place_columns(frame) if keeps_places else [F.col(TURN)] if TURN in frame.columns else []),
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
        *(name for name in (FROM_TOPIC, FROM_OFFSET, TURN, ELEMENT) if name in rows.columns),
        *(mine[name].alias(name) for name in kind.fieldNames()),
        content(F.col(_PARSED_RIGHT), right).alias(node.stream),
    )
