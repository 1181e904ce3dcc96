"""Checks of the user's functions, without their code: names, references, types of results."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from sqlglot import exp

from streams_runtime.api.flow.known_columns import Type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.schemas.ddl_schema import parse_schema
from streams_runtime.api.sql.aggregate_parameters import OWN_AGGREGATES
from streams_runtime.api.sql.scalars import (
    AGGREGATE_FUNCTIONS,
    BATCH_DEPENDENT_FUNCTIONS,
    GENERATOR_FUNCTIONS,
    WINDOW_FUNCTIONS,
)
from streams_runtime.api.sql.sql_tree import SqlSyntaxError, parse_expression
from streams_runtime.api.steps.functions_spec import REFERENCE_PATTERN, FunctionSpec
from streams_runtime.errors import Mistake

FUNCTIONS = "spec.topology.functions"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(REFERENCE_PATTERN)
_SQL = AGGREGATE_FUNCTIONS | OWN_AGGREGATES | BATCH_DEPENDENT_FUNCTIONS | GENERATOR_FUNCTIONS | WINDOW_FUNCTIONS


def function_mistakes(functions: Mapping[str, FunctionSpec]) -> Iterator[Mistake]:
    """What is wrong with declared functions; that Spark has one of the name already is only known to Spark."""
    first: dict[str, str] = {}
    for name, spec in functions.items():
        path = under(FUNCTIONS, name)
        if not _NAME.fullmatch(name):
            yield Mistake(path, f"found {name!r}", "name a function with letters, digits and _")
        elif _known_to_sql(name):
            yield Mistake(path, f"{name} is a function of SQL", "give it another name")
        elif name.lower() in first:
            found = f"{name!r} beside {first[name.lower()]!r}; SQL takes no notice of case"
            yield Mistake(path, found, "give one of the two another name")
        first.setdefault(name.lower(), name)
        if (spec.python is None) == (spec.pandas is None):
            found = "neither python nor pandas" if spec.python is None else "python beside pandas"
            yield Mistake(path, found, "name the function with one of the two")
        elif not _REFERENCE.fullmatch(spec.reference):
            kind = "python" if spec.python is not None else "pandas"
            yield Mistake(under(path, kind), f"found {spec.reference!r}", "write package.module:function")
        for problem in parse_schema(f"result {spec.returns}")[1]:
            yield Mistake(under(path, "returns"), problem.found, "give a type of Spark, such as STRING or BIGINT")


def taken_names(own: Iterable[str], functions: Collection[str]) -> Iterator[Mistake]:
    """Names of the user's functions that Spark's `functions`, in small letters, have too."""
    for name in own:
        if name.lower() in functions:
            yield Mistake(under(FUNCTIONS, name), f"Spark has a function {name}", "give it another name")


def function_types(functions: Mapping[str, FunctionSpec]) -> dict[str, Type]:
    """The types of the functions' results, by names in small letters; without those that can't be read."""
    found = {}
    for name, spec in functions.items():
        columns = parse_schema(f"result {spec.returns}")[0]
        column = columns.get("result") if columns is not None else None
        if column is not None and column.type is not None:
            found[name.lower()] = column.type
    return found


def _known_to_sql(name: str) -> bool:
    """Whether a call of this name is not read as that of a function that somebody has defined."""
    try:
        return name.lower() in _SQL or not isinstance(parse_expression(f"{name}(a)"), exp.Anonymous)
    except SqlSyntaxError:
        return True
