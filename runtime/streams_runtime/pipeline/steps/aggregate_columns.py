"""What Spark adds up of an aggregate, column by column, and what its analysis refuses of that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from streams_runtime.batch.columns import ORDER, OUT_RECORDS, OUT_TIME
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.pipeline.spark.refused_expressions import arguments_refused, refusing
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.topology.nodes.aggregate_node import Aggregate


def partials(
    state: AggregateState, rows: DataFrame, path: str, within: Sequence[str] = (), more: Sequence[Column] = ()
) -> DataFrame:
    """The batch's contribution to each key: `_partition`, `_key`, the state's columns, `_time` (ms, latest).

    `rows` are usable ones; `within` names columns that divide a key's records, which are given too.
    """
    columns = []
    for column in state.columns:
        with refusing(column.path):
            columns.append(F.expr(column.expression).alias(column.name))
    with refusing(path):
        grouped = rows.groupBy("_partition", "_key", *within)
        latest = F.unix_millis(F.max("_timestamp")).alias(OUT_TIME)
        records = [F.count(F.lit(1)).alias(OUT_RECORDS)] if within else []
        return grouped.agg(*columns, latest, *records, *more)


def sums_of_doubles(aggregates: Iterable[Aggregate], rows: DataFrame) -> frozenset[str]:
    """The columns that are sums of type DOUBLE; not those that `check_aggregates` refuses."""
    found = set()
    for each in aggregates:
        if each.function == "sum":
            with suppress(InvalidApplicationException), refusing(each.path):
                (total,) = rows.agg(F.expr(f"sum({each.taken})")).schema
                if isinstance(total.dataType, DoubleType):
                    found.add(each.column)
    return frozenset(found)


def check_aggregates(state: AggregateState, rows: DataFrame) -> None:
    """Analyse each aggregate by itself, so that a mistake is reported at its own field.

    Raises:
        InvalidApplicationException: the aggregates that Spark's analysis refuses, all of them.
    """
    of_records = [each for each in state.declared if not each.subtracts]
    mistakes = {each.path: each for each in arguments_refused(of_records, rows)}
    rows = rows.withColumn(ORDER, F.lit(0))
    for column in state.columns:
        if column.path in mistakes:
            continue
        try:
            with refusing(column.path):
                rows.agg(F.expr(column.expression))
        except InvalidApplicationException as refused:
            mistakes |= {mistake.path: mistake for mistake in refused.mistakes}
    if mistakes:
        raise InvalidApplicationException(list(mistakes.values()))
