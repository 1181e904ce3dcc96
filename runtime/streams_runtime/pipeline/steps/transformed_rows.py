"""What a where and a select do to rows, of a stream and of a table."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.columns import HIDDEN, NULL_VALUE, RECORD
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.pipeline.spark.frames import value_columns
from streams_runtime.pipeline.spark.refused_expressions import columns_refused, refusing
from streams_runtime.topology.nodes.step_nodes import TransformNode


def transformed(node: TransformNode, frame: DataFrame, table: bool) -> DataFrame:
    """The node's output over its input's frame; `table` says whether that is a table."""
    if node.where is not None:
        with refusing(f"{node.path}.where"):
            keep = F.expr(node.where)
            frame = _deleted_unless(keep, frame) if table else frame.where(keep)
    if node.select is None:
        return frame
    columns: list[Column] = [F.col(name) for name in frame.columns if name in HIDDEN and name != RECORD]
    if node.keeps_columns:
        named = {name.lower() for name, _ in node.select}
        columns += [F.col(f"`{name}`") for name in value_columns(frame) if name.lower() not in named]
    for name, expression in node.select:
        with refusing(f"{node.path}.select.{name}"):
            value = F.expr(expression)
            columns.append((F.when(~F.col(NULL_VALUE), value) if table else value).alias(name))
    return frame.select(*columns)


def _deleted_unless(keep: Column, frame: DataFrame) -> DataFrame:
    """A table's rows, those that do not fit as deletions: a row that leaves a table is no silence for whoever follows.

    A deletion has no columns: a stream that the table becomes may ask for them.
    """
    marked = frame.withColumn(NULL_VALUE, F.col(NULL_VALUE) | ~F.coalesce(keep, F.lit(False)))
    there = ~F.col(NULL_VALUE)
    return marked.withColumns({name: F.when(there, F.col(f"`{name}`")) for name in value_columns(frame)})


def check_select(node: TransformNode, frame: DataFrame) -> None:
    """Analyse each column by itself over the step's input, so that a mistake is reported at its own field.

    Raises:
        InvalidApplicationException: the columns that Spark's analysis refuses, all of them.
    """
    mistakes = columns_refused(frame, node.select or (), f"{node.path}.select")
    if mistakes:
        raise InvalidApplicationException(mistakes)
