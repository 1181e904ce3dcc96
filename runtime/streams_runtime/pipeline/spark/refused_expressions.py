"""What Spark's analysis refuses, as mistakes of the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from streams_runtime.api.sql.aggregate_calls import type_problem
from streams_runtime.errors import InvalidApplicationException, Mistake, NotSupportedException
from streams_runtime.topology.nodes.aggregate_node import Aggregate

_CLASS = re.compile(r"^\[[A-Z0-9_.]+\] ")


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """Turn what Spark's analysis refuses into a mistake at the field `path`."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        mistake = Mistake(
            path,
            f"is refused by Spark: {_reason(error)}",
            "correct the expression; it is Spark SQL over the columns of the step's input",
        )
        raise InvalidApplicationException([mistake]) from error
    except NotSupportedException as error:
        found, _, remedy = str(error).partition("; ")
        raise InvalidApplicationException([Mistake(path, found, remedy)]) from error


def _reason(error: AnalysisException | ParseException) -> str:
    """The sentence of Spark's message, without its class and state."""
    first = (error.getMessage() or str(error)).splitlines()[0]
    return _CLASS.sub("", first.partition("SQLSTATE:")[0]).rstrip(". ")


def all_refused(checks: Iterable[tuple[str, Callable[[], object]]]) -> list[Mistake]:
    """What Spark's analysis refuses of several fields: each check is made by itself, under the field that it is of."""
    mistakes: list[Mistake] = []
    for path, check in checks:
        try:
            with refusing(path):
                check()
        except InvalidApplicationException as refused:
            mistakes += refused.mistakes
    return mistakes


def expect_type(kind: type[DataType], frame: DataFrame, text: str, path: str, wanted: tuple[str, str]) -> None:
    """Refuse an expression of another type; `wanted`: what one of another type can't be, and what to give instead.

    Raises InvalidApplicationException at the field `path`.
    """
    found = _select(frame, text).schema[0].dataType
    if not isinstance(found, kind):
        what, remedy = wanted
        raise InvalidApplicationException([Mistake(path, f"{text} is {found.simpleString().upper()}, {what}", remedy)])


def columns_refused(frame: DataFrame, select: Iterable[tuple[str, str]], path: str) -> list[Mistake]:
    """What Spark's analysis refuses of a `select` over a frame, (column, expression) each; `path` is its field."""
    return all_refused((f"{path}.{name}", partial(_select, frame, expression)) for name, expression in select)


def arguments_refused(aggregates: Iterable[Aggregate], frame: DataFrame) -> list[Mistake]:
    """Arguments over a frame that Spark's analysis refuses, or that are of a type that the function does not take."""
    return all_refused((each.path, partial(_check_type, each, frame)) for each in aggregates if each.argument)


def _check_type(aggregate: Aggregate, frame: DataFrame) -> None:
    argument = aggregate.argument or ""
    (field,) = _select(frame, argument).schema
    problem = type_problem(aggregate.function, argument, field.dataType.simpleString())
    if problem is not None:
        raise InvalidApplicationException([Mistake(aggregate.path, problem.found, problem.remedy)])


def _select(frame: DataFrame, expression: str) -> DataFrame:
    return frame.select(F.expr(expression))
