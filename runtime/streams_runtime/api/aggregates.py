"""Aggregate columns: exactly one call of count, sum, min, max or avg."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from streams_runtime.api.columns import Columns, Type, type_named
from streams_runtime.api.scalars import AGGREGATE_FUNCTIONS, called_functions, scalar_problems
from streams_runtime.api.sql import Problem, SqlSyntaxError, parse_expression, tokens_of

FUNCTIONS = ("count", "sum", "min", "max", "avg")
_CHOICE = "use count(*), count(x), sum(x), min(x), max(x) or avg(x)"
_INTEGRAL = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_FLOATING = (exp.DType.FLOAT, exp.DType.DOUBLE)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`function`(`argument`); the argument is the user's own text, None for `count(*)`."""

    function: str
    argument: str | None

    def result_type(self, columns: Columns) -> Type | None:
        """The type of the result where the argument's type is known."""
        if self.function == "count":
            return type_named("BIGINT")
        kind = columns.type_of(parse_expression(self.argument or ""))
        if kind is None or self.function in ("min", "max"):
            return kind
        if self.function == "avg":
            return type_named("DOUBLE") if kind.is_type(*_INTEGRAL, *_FLOATING) else None
        if kind.is_type(*_INTEGRAL):
            return type_named("BIGINT")
        return type_named("DOUBLE") if kind.is_type(*_FLOATING) else None


def aggregate_problems(text: str, columns: Columns | None) -> list[Problem]:
    """Everything that is wrong with an aggregate column; `columns` is None when they are not known."""
    try:
        call = parse_aggregate(text)
    except SqlSyntaxError as error:
        return [error.problem]
    if call.argument is None:
        return []
    problems = scalar_problems(call.argument, columns)
    return [Problem(f"in {text!r}: {problem.found}", problem.remedy) for problem in problems]


def parse_aggregate(text: str) -> AggregateCall:
    """The call in `text`. Raises SqlSyntaxError when it is not exactly one call of a function above."""
    tree = parse_expression(text)
    _check_root(tree, text)
    tokens = tokens_of(text)
    function = tokens[0][0].lower()
    if function not in FUNCTIONS or tokens[1][0] != "(" or tokens[-1][0] != ")":
        raise SqlSyntaxError(Problem(f"found {text!r}", _CHOICE))
    if len(tokens) > 3 and tokens[2][0].lower() in ("distinct", "all"):
        found = f"{tokens[2][0].upper()} in {text!r} is not there yet"
        raise SqlSyntaxError(Problem(found, "leave it out: every record counts"))
    # From token to token: comments at either end are not part of the argument.
    argument = text[tokens[2][1] : tokens[-2][2] + 1] if len(tokens) > 3 else ""
    if isinstance(tree, exp.Count) and isinstance(tree.this, exp.Star):
        return AggregateCall(function, None)
    if not argument or tree.expressions:
        raise SqlSyntaxError(Problem(f"{function} takes one argument, found {argument!r}", _CHOICE))
    if tree.find(exp.Order, exp.Limit, exp.Having, exp.HavingMax):
        raise SqlSyntaxError(Problem(f"{argument!r} is more than an argument", _CHOICE))
    return AggregateCall(function, argument)


def _check_root(tree: exp.Expr, text: str) -> None:
    if isinstance(tree, exp.Count | exp.Sum | exp.Min | exp.Max | exp.Avg):
        return
    if tree.find(exp.Query):
        raise SqlSyntaxError(Problem("a sub-query", _CHOICE))
    if tree.find(exp.Window, exp.WithinGroup):
        raise SqlSyntaxError(Problem("a window function (OVER)", _CHOICE))
    if isinstance(tree, exp.Alias):
        raise SqlSyntaxError(
            Problem(f"{text!r} names its result", "leave the name out; the field's name is the column's")
        )
    if isinstance(tree, exp.Filter):
        raise SqlSyntaxError(Problem("FILTER is not there yet", "aggregate an expression: sum(if(condition, x, null))"))
    called = called_functions(text)
    aggregates = [name for name in called if name in AGGREGATE_FUNCTIONS]
    if not aggregates:
        raise SqlSyntaxError(Problem(f"{text!r} is not an aggregate", f"{_CHOICE}; for one record's value use select"))
    if isinstance(tree, exp.AggFunc | exp.Anonymous) and aggregates[0] == called[0] and aggregates[0] not in FUNCTIONS:
        raise SqlSyntaxError(Problem(f"{aggregates[0]} is not there yet", _CHOICE))
    found = f"{text!r} computes with {' and '.join(aggregates)}"
    raise SqlSyntaxError(Problem(found, "keep each aggregate alone in its own column and use a select after it"))
