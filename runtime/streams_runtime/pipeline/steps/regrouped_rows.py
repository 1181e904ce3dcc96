"""Spark's part of tables grouped by another key: what the aggregates of a group take of a row.

That is a column for each aggregate, which is null where it takes nothing: for the counts a 1, for sums and averages the
number. A record of the repartition topic has these of the row that leaves the group and of the one that comes to it.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StructType

from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.spark_formats import format_of
from streams_runtime.pipeline.spark.refused_expressions import all_refused, arguments_refused, refusing
from streams_runtime.topology.nodes.aggregate_node import Aggregate
from streams_runtime.topology.nodes.regroup_node import RegroupNode

NEW, OLD = "new", "old"


def columns_taken(node: RegroupNode) -> list[Column]:
    """What each aggregate takes of a row, by its name."""
    return [F.expr(_taken(each)).alias(each.column) for each in node.aggregates]


def check_regrouping(node: RegroupNode, rows: DataFrame) -> DataFrame:
    """Analyse the groups and the aggregates of a table's rows, over none; the records of the repartition topic.

    Raises:
        InvalidApplicationException: the expressions that Spark's analysis refuses, and a group that no key can be; all
            of them.
    """
    mistakes = arguments_refused(node.aggregates, rows)
    asked = [each for each in node.aggregates if each.path not in {mistake.path for mistake in mistakes}]
    mistakes += all_refused((each.path, partial(_check_aggregate, each, rows)) for each in asked)
    try:
        with refusing(f"{node.path}.groupBy"):
            (group,) = rows.select(F.expr(node.key)).schema
            format_of(group.dataType)
    except InvalidApplicationException as refused:
        mistakes += refused.mistakes
    if mistakes:
        raise InvalidApplicationException(mistakes)
    with refusing(node.path):
        row = StructType([*rows.select(*columns_taken(node)).schema])
        nothing = [F.lit(None).cast(row).alias(name) for name in (OLD, NEW)]
        return rows.select(F.expr(node.key).alias("_key"), *nothing)


def _check_aggregate(aggregate: Aggregate, rows: DataFrame) -> None:
    condition = "" if aggregate.condition is None else f" filter (where {aggregate.condition})"
    call = f"{aggregate.function}({aggregate.argument or '*'}){condition}"
    (found,) = rows.agg(F.expr(call)).schema
    if aggregate.function == "sum" and not isinstance(found.dataType, LongType | DoubleType):
        text = f"sums of type {found.dataType.simpleString().upper()} are not there yet"
        raise InvalidApplicationException([Mistake(aggregate.path, text, "cast the argument to BIGINT or DOUBLE")])


def _taken(aggregate: Aggregate) -> str:
    argument = aggregate.argument or "1"
    conditions = [] if aggregate.condition is None else [f"({aggregate.condition})"]
    match aggregate.function:
        case "count":
            conditions += [] if aggregate.argument is None else [f"({argument}) is not null"]
        case "count_if":
            conditions.append(f"({argument})")
        case "avg":
            argument = f"cast(({argument}) as double)"
    given = "1" if aggregate.function in ("count", "count_if") else f"({argument})"
    return f"if({' and '.join(conditions)}, {given}, null)" if conditions else given
