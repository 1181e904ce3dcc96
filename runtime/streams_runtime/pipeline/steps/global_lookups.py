"""Spark's part of a join with a global table: what each record looks up in it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.columns import LOOKUP
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.spark_formats import format_of
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.topology.nodes.all_nodes import JoinNode


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
