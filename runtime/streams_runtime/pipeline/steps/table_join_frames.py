"""Spark's part of a join: a table's value beside each record, as columns that the join's expressions see."""

from __future__ import annotations

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streams_runtime.api.steps.format_names import OF_COLUMNS
from streams_runtime.batch.columns import LOOKUP, MATCH, RECORD, VALUE
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.spark_formats import content, format_of, parsed
from streams_runtime.pipeline.spark.refused_expressions import columns_refused, refusing
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

_PARSED = "_parsed_match"


def joined(node: JoinNode, rows: DataFrame, table: Format) -> DataFrame:
    """The join's result over records with `MATCH` beside them; `table` is the format of the table's values."""
    beside = _beside(node, rows, table)
    return beside.select(*result_columns(node, tuple(rows.columns)))


@cache
def result_columns(node: JoinNode, columns: tuple[str, ...]) -> list[Column]:
    """The columns that the join gives, of records with these and the table's as a struct under its name."""
    added = dict(node.select)
    kept = [F.col(f"`{name}`") for name in columns if name not in (MATCH, RECORD) and name not in added]
    return [*kept, *(F.expr(expression).alias(name) for name, expression in added.items())]


def check_join(node: JoinNode, stream: DataFrame, key: Format, value: Format) -> DataFrame:
    """Analyse a join over no records, each column by itself; its result. `key` and `value` are the table's formats.

    Raises:
        InvalidApplicationException: keys of two types, and the columns that Spark's analysis refuses; all of them.
    """
    mistakes = []
    with refusing(f"{node.path}.join"):
        mine = format_of(stream.schema["_key"].dataType) if node.on is None else key
    if mine.name != key.name:
        found = f"the keys of {node.input} are {mine.name}, those of {node.table} {key.name}"
        remedy = "put a keyBy before the join that gives the table's type"
        mistakes.append(Mistake(f"{node.path}.join.table", found, remedy))
    rows = stream.withColumn(MATCH, F.lit(None).cast("binary"))
    beside = _beside(node, rows, value)
    mistakes += columns_refused(beside, node.select, f"{node.path}.join.select")
    if mistakes:
        raise InvalidApplicationException(mistakes)
    return joined(node, rows, value)


def with_lookup(node: JoinNode, rows: DataFrame) -> DataFrame:
    """The records with what each looks up (LOOKUP); as they are for a join by the key."""
    if node.on is None:
        return rows
    with refusing(f"{node.path}.join.key"):
        return rows.withColumn(LOOKUP, F.expr(node.on))


def check_lookup(node: JoinNode, stream: DataFrame, table: DataFrame) -> None:
    """Analyse what a join looks up over no records; `table` has the keys that it is compared with.

    Raises:
        InvalidApplicationException: Spark's analysis refuses it, or it is of another type than the keys.
    """
    rows = with_lookup(node, stream)
    mine, theirs = rows.schema[LOOKUP].dataType, table.schema["_key"].dataType
    with refusing(f"{node.path}.join.key"):
        here, there = format_of(mine), format_of(theirs)
    if here.name != there.name or (here.name == "json" and mine.simpleString() != theirs.simpleString()):
        found = f"{node.on} is {mine.simpleString().upper()}, the key of {node.table} {theirs.simpleString().upper()}"
        raise InvalidApplicationException(
            [Mistake(f"{node.path}.join.key", found, "give the table's type: cast(… as …)")]
        )


def _beside(node: JoinNode, rows: DataFrame, table: Format) -> DataFrame:
    """The records, and the table's columns as a struct under the table's name: null where it holds nothing."""
    frame = rows.withColumn(_PARSED, parsed(F.col(MATCH), table))
    found = content(F.col(_PARSED), table)
    if table.name not in OF_COLUMNS:
        found = F.when(F.col(MATCH).isNotNull(), F.struct(found.alias(VALUE)))
    return frame.withColumn(node.table, found)
