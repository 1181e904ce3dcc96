"""Aggregate columns: exactly one call of one of the functions that can be kept for each key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from streams_runtime.api.flow.known_columns import Columns, Type, shown_type, type_named
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.sql.aggregate_parameters import (
    LISTS,
    OWN_AGGREGATES,
    PARAMETERS,
    TOP,
    arguments_of,
    without_parameter,
)
from streams_runtime.api.sql.filter_clause import without_filter
from streams_runtime.api.sql.python_aggregates import EXAMPLE, PYTHON, is_python, parse_python
from streams_runtime.api.sql.reduce_aggregates import EXAMPLE as REDUCE_EXAMPLE
from streams_runtime.api.sql.reduce_aggregates import (
    REDUCE,
    is_reduce,
    parameter_of,
    parse_reduce,
    reduce_problems,
    reduction_of,
)
from streams_runtime.api.sql.scalars import (
    AGGREGATE_FUNCTIONS,
    called_functions,
    condition_problems,
    scalar_problems,
)
from streams_runtime.api.sql.sql_tree import Problem, SqlSyntaxError, parse_expression, tokens_of

_SPREADS = ("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev")
_OF_CONDITIONS = ("count_if", "bool_and", "bool_or")
_SOME = ("any_value",)
_PLAIN = (
    *("count", "sum", "min", "max", "avg", "first", "last", *_SPREADS, "approx_count_distinct"),
    *(*_OF_CONDITIONS, *_SOME),
)
COUNT_DISTINCT = "count_distinct"
"""What count(distinct …) is called, which SQL has no name for."""
BY = ("max_by", "min_by")
"""Those of two expressions: the value, and what it is the largest or smallest by."""
OF_SEVERAL = frozenset({*BY, COUNT_DISTINCT, TOP})
"""Those whose parameter, if they have one, is a second expression, behind which TOP has a number."""
FUNCTIONS = (*_PLAIN, *BY, *PARAMETERS, PYTHON, REDUCE)
ORDERED = frozenset({"first", "last", "collect_list", "collect_set", PYTHON, REDUCE})
"""Those whose result depends on the order of the records."""
ADDED = frozenset({"sum", "avg", *_SPREADS})
"""Those of which the order of the records decides how doubles are rounded."""
_CHOICE = (
    "use count(*), count(distinct x), or count, sum, min, max, avg, first, last, any_value, variance, stddev or"
    " approx_count_distinct of an expression, or count_if, bool_and or bool_or of a condition, or max_by(x, y) or"
    f" min_by(x, y), or {', '.join(each.example for each in PARAMETERS.values())}, or {EXAMPLE}, or {REDUCE_EXAMPLE}"
)
_SAME = {"every": "bool_and", "some": "bool_or", "any": "bool_or", "first_value": "first", "last_value": "last"}
"""Spark's other names of functions."""
_SAME |= {"mean": "avg", "std": "stddev", COUNT_DISTINCT: "count(distinct x)"}
_DISTINCT_OR_NOT = frozenset(
    {"min", "max", "any_value", "bool_and", "bool_or", *BY, "approx_count_distinct", "collect_set"}
)
"""Functions to which it makes no difference how often a value comes."""
_WITHOUT_FILTER = {
    PYTHON: "give the class the condition as one more column, and let it leave out records",
    REDUCE: "let the lambda decide: if(condition, the new state, state)",
}
_REMEDY_FOR_NULLS = (
    "leave it out, where first and last take nulls as they come, and any_value leaves them out; for the first or last"
    " value that is none, put a where before the aggregate, which leaves records out"
)
_CALLS = (
    exp.Count,
    exp.Sum,
    exp.Min,
    exp.Max,
    exp.Avg,
    exp.First,
    exp.Last,
    exp.Variance,
    exp.VariancePop,
    exp.Stddev,
    exp.StddevPop,
    exp.StddevSamp,
    exp.ApproxDistinct,
    exp.ApproxQuantile,
    exp.ArrayAgg,
    exp.ArrayUniqueAgg,
    exp.CountIf,
    exp.LogicalAnd,
    exp.LogicalOr,
    exp.AnyValue,
    exp.ArgMax,
    exp.ArgMin,
)
_INTEGRAL = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_FLOATING = (exp.DType.FLOAT, exp.DType.DOUBLE)
_RESULTS = {
    **dict.fromkeys(("count", "count_if", "approx_count_distinct", COUNT_DISTINCT), "BIGINT"),
    "approx_percentile": "DOUBLE",
    "bool_and": "BOOLEAN",
    "bool_or": "BOOLEAN",
}
_OF_NUMBERS = ("sum", "avg", *_SPREADS)
_NEVER_ADDED = frozenset({"boolean", "binary", "date", "timestamp_ntz", "array", "map", "struct", "variant"})
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"})
_NO_SINGLE_VALUES = frozenset({"array", "map", "struct", "variant"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ltz", "timestamp_ntz"})
_KEPT_IN_LISTS = (_NUMBERS - {"decimal"}) | _TIMES | {"string", "boolean"}


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`function`(`argument`, `parameter`), in the user's own text; the argument is None for `count(*)`.

    The function of `count(distinct …)` is COUNT_DISTINCT. The parameter is None for functions that take none. Of python
    it is the class's name, and the argument all columns that the class is given, as one struct. Of reduce it is all
    that stands in its brackets, and the argument the columns that its lambda names, as one struct. Of max_by, min_by
    and COUNT_DISTINCT it is the second expression, of TOP this and the number. `condition` is that of a FILTER.
    """

    function: str
    argument: str | None
    parameter: str | None = None
    condition: str | None = None

    def result_type(self, columns: Columns) -> Type | None:
        """The type of the result where the argument's type is known. Of python the class alone says it."""
        if self.function in _RESULTS:
            return type_named(_RESULTS[self.function])
        kind = self.argument_type(columns)
        if self.function == REDUCE:
            kind = reduction_of(self.parameter or "").initial_type()
        if kind is not None and self.function in LISTS:
            return exp.DataType(this=exp.DType.ARRAY, expressions=[kind.copy()], nested=True)
        if kind is None or self.function in ("min", "max", "first", "last", *_SOME, *BY, REDUCE):
            return kind
        if self.function == "avg" or self.function in _SPREADS:
            return type_named("DOUBLE") if kind.is_type(*_INTEGRAL, *_FLOATING) else None
        if kind.is_type(*_INTEGRAL):
            return type_named("BIGINT")
        return type_named("DOUBLE") if kind.is_type(*_FLOATING) else None

    @property
    def second(self) -> str | None:
        """The second expression, of functions that have one."""
        return second_of(self.function, self.parameter)

    def argument_type(self, columns: Columns) -> Type | None:
        """The type of the argument where it is known without Spark."""
        return columns.type_of(self.argument or "")


def aggregate_problems(text: str, columns: Columns | None) -> list[Problem]:
    """Everything that is wrong with an aggregate column; `columns` is None when they are not known."""
    try:
        call = parse_aggregate(text)
    except SqlSyntaxError as error:
        return [error.problem]
    reduces = call.function == REDUCE
    problems = reduce_problems(text, columns) if reduces else []
    for each in (None if reduces else call.argument, call.second, call.condition):
        problems += [] if each is None else (_within(text, each, one) for one in scalar_problems(each, columns))
    if not problems and columns is not None:
        kind = call.argument_type(columns) if call.argument is not None else None
        if kind is not None:
            problems += (_within(text, call.argument or "", each) for each in _type_problems(call, shown_type(kind)))
        problems += (_within(text, call.second or "", each) for each in _order_problems(call, columns))
        if call.condition is not None:
            problems += (_within(text, call.condition, each) for each in condition_problems(call.condition, columns))
    return [replace(problem, found=f"in {text!r}: {problem.found}") for problem in problems]


def _within(text: str, part: str, problem: Problem) -> Problem:
    """A problem of a part of a call, as one of the whole text."""
    begun = text.rfind(part) if text.endswith(f"{part})") else text.find(part, text.find("(") + 1)
    return problem if problem.at is None or begun < 0 else replace(problem, at=begun + problem.at)


def _order_problems(call: AggregateCall, columns: Columns) -> Iterator[Problem]:
    """What the second expression is told of a call that goes by it."""
    if call.second is None or call.function == COUNT_DISTINCT:
        return
    kind = columns.type_of(call.second)
    problem = None if kind is None else type_problem("max", call.second, shown_type(kind))
    if problem is not None:
        yield replace(problem, at=0)


def second_of(function: str, parameter: str | None) -> str | None:
    """The second expression of a call, of functions that have one."""
    if parameter is not None and function == TOP:
        # The number behind it has no comma.
        return parameter.rpartition(",")[0]
    return parameter if function in OF_SEVERAL else None


def type_problem(function: str, argument: str, kind: str) -> Problem | None:
    """Why the function takes no argument of this type, which is written as Spark does; None: it does."""
    name = kind.lower().partition("(")[0].partition("<")[0]
    found = f"{argument} is {kind.upper()}"
    if function == "approx_percentile" and name not in _NUMBERS:
        return Problem(f"{found}, and approx_percentile is of numbers", "cast it to DOUBLE")
    if function in _OF_CONDITIONS and name not in ("boolean", "void", "null"):
        return Problem(f"{found}, and {function} is of conditions", f"compare it, as in {function}({argument} > 0)")
    if function in _OF_NUMBERS and name in _NEVER_ADDED:
        return Problem(f"{found}, and {function} is of numbers", "cast it to DOUBLE, or count it")
    if function in ("max", "min") and ("map<" in kind.lower() or "variant" in kind.lower()):
        return Problem(f"{found}, which has no order", "give it one field or entry of it")
    return _value_problem(function, found, kind, name)


def _value_problem(function: str, found: str, kind: str, name: str) -> Problem | None:
    """Why values of the type are not told apart, or not kept; `name`: the type without its parts."""
    if function == "approx_count_distinct" and name in _NO_SINGLE_VALUES:
        return Problem(f"{found}, which is not counted by its values", "count one field of it, or to_json of it")
    if function == COUNT_DISTINCT and "map<" in kind.lower():
        return Problem(f"{found}, and no two maps are compared", "count array_sort(map_entries(x)), or one entry of it")
    if function in LISTS and function != TOP and name not in _KEPT_IN_LISTS:
        return Problem(f"{found}, which lists do not keep yet", "collect one field of it, or cast it to STRING")
    return None


def _type_problems(call: AggregateCall, kind: str) -> list[Problem]:
    problem = type_problem(call.function, call.argument or "", kind)
    return [] if problem is None else [replace(problem, at=0)]


def parse_aggregate(text: str) -> AggregateCall:
    """The call in `text`. Raises SqlSyntaxError when it is not exactly one call of a function above."""
    text, condition = without_filter(text)
    call = _parse_call(text)
    if condition is not None and call.function in _WITHOUT_FILTER:
        remedy = _WITHOUT_FILTER[call.function]
        raise SqlSyntaxError(Problem(f"FILTER behind {call.function} is not there", remedy))
    return call if condition is None else replace(call, condition=condition)


def _parse_call(text: str) -> AggregateCall:
    if is_python(text):
        reference, columns = parse_python(text)
        return AggregateCall(PYTHON, columns, reference)
    if is_reduce(text):
        return AggregateCall(REDUCE, parse_reduce(text).record, parameter_of(text))
    whole, (text, parameter) = text, without_parameter(text)
    tree = parse_expression(text)
    tokens = tokens_of(text)
    function = tokens[0][0].lower()
    if not (isinstance(tree, exp.Anonymous) and function in OWN_AGGREGATES):
        _check_root(tree, whole)
    if function not in FUNCTIONS or tokens[1][0] != "(" or tokens[-1][0] != ")":
        found = f"{function} is not there yet" if function in AGGREGATE_FUNCTIONS - {*FUNCTIONS} else f"found {whole!r}"
        raise SqlSyntaxError(Problem(found, _remedy(function)))
    if isinstance(tree, exp.Count) and isinstance(tree.this, exp.Distinct):
        return _distinct_values(text, tree.this)
    if len(tokens) > 3 and tokens[2][0].lower() in ("distinct", "all"):
        word = tokens[2][0].upper()
        raise SqlSyntaxError(Problem(f"{word} in {whole!r} is not there yet", _without(word, function)))
    if function in (*BY, TOP):
        return _by_another(text, function, parameter)
    # From token to token: comments at either end are not part of the argument.
    argument = text[tokens[2][1] : tokens[-2][2] + 1] if len(tokens) > 3 else ""
    if isinstance(tree, exp.Count) and isinstance(tree.this, exp.Star):
        return AggregateCall(function, None)
    if not argument or tree.expressions or tree.args.get("accuracy"):
        raise SqlSyntaxError(Problem(f"{function} takes one argument, found {argument!r}", _CHOICE))
    if tree.find(exp.Order, exp.Limit, exp.Having, exp.HavingMax):
        raise SqlSyntaxError(Problem(f"{argument!r} is more than an argument", _CHOICE))
    return AggregateCall(function, argument, parameter)


def _by_another(text: str, function: str, number: str | None) -> AggregateCall:
    """max_by, min_by or TOP, a call with nothing behind it; `number` is what TOP had behind two expressions.

    Raises SqlSyntaxError: it has not two expressions.
    """
    tokens = tokens_of(text)
    commas, _ = arguments_of(tokens[1:])
    if len(commas) != 1:
        found = f"{function} takes a value and what it goes by; found {text!r}"
        raise SqlSyntaxError(Problem(found, f"write {function}(x, y)"))
    comma = next(number for number, (_, start, _) in enumerate(tokens) if start == commas[0])
    # From token to token: comments at either end are not part of an expression.
    value = text[tokens[2][1] : tokens[comma - 1][2] + 1]
    by = text[tokens[comma + 1][1] : tokens[-2][2] + 1]
    return AggregateCall(function, value, by if number is None else f"{by}, {number}")


def _distinct_values(text: str, distinct: exp.Distinct) -> AggregateCall:
    """count(distinct …), a call with nothing behind it. Raises SqlSyntaxError: it has not one or two expressions."""
    tokens = tokens_of(text)
    commas, _ = arguments_of(tokens[1:])
    if len(distinct.expressions) not in (1, 2) or tokens[3][0] == "*":
        remedy = "write count(distinct x) or count(distinct x, y); of more put them into a struct in a select before"
        raise SqlSyntaxError(Problem(f"count(distinct …) takes one expression or two; found {text!r}", remedy))
    bounds = [2, *(number for number, (_, start, _) in enumerate(tokens) if start in commas), len(tokens) - 1]
    # From token to token: comments at either end are not part of an expression.
    first, *more = (text[tokens[one + 1][1] : tokens[other - 1][2] + 1] for one, other in pairwise(bounds))
    return AggregateCall(COUNT_DISTINCT, first, *more)


def _check_root(tree: exp.Expr, text: str) -> None:
    if isinstance(tree, _CALLS):
        return
    if tree.find(exp.Query):
        raise SqlSyntaxError(Problem("a sub-query", _CHOICE))
    if tree.find(exp.Window, exp.WithinGroup):
        raise SqlSyntaxError(Problem("a window function (OVER)", _CHOICE))
    if isinstance(tree, exp.Alias):
        raise SqlSyntaxError(
            Problem(f"{text!r} names its result", "leave the name out; the field's name is the column's")
        )
    if isinstance(tree, exp.IgnoreNulls | exp.RespectNulls):
        found = f"what happens to nulls can't be chosen yet, found {text!r}"
        raise SqlSyntaxError(Problem(found, _REMEDY_FOR_NULLS))
    called = called_functions(text)
    aggregates = [name for name in called if name in AGGREGATE_FUNCTIONS | OWN_AGGREGATES]
    if not aggregates:
        remedy = _remedy(called[0]) if isinstance(tree, exp.Anonymous) else _CHOICE
        raise SqlSyntaxError(Problem(f"{text!r} is not an aggregate", f"{remedy}; for one record's value use select"))
    if isinstance(tree, exp.AggFunc | exp.Anonymous) and aggregates[0] == called[0] and aggregates[0] not in FUNCTIONS:
        raise SqlSyntaxError(Problem(f"{aggregates[0]} is not there yet", _remedy(aggregates[0])))
    found = f"{text!r} computes with {' and '.join(aggregates)}"
    raise SqlSyntaxError(Problem(found, "keep each aggregate alone in its own column and use a select after it"))


def _without(word: str, function: str) -> str:
    """What to write in place of DISTINCT or ALL: never what means something else without saying so."""
    if word == "ALL" or function in _DISTINCT_OR_NOT:
        return f"leave it out: {function} gives the same"
    if function == "count":
        return "write count(distinct x), with nothing behind the expression"
    other = "leaving it out counts every record, which is another result"
    if function == "collect_list":
        return f"collect_set(x, 10) keeps each value once; {other}"
    return f"put a dedupe or a where before the aggregate, so that each value comes once; {other}"


def _remedy(function: str) -> str:
    """The function that means the same, else the nearest, else all of them."""
    if function in _SAME:
        return f"use {_SAME[function]}, which is the same"
    near = suggestion(function, FUNCTIONS)
    return near if near.startswith("did you mean") else _CHOICE
