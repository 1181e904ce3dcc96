"""Checks of one scalar expression: one value from one record."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from streams_runtime.api.flow.known_columns import Columns, shown_type
from streams_runtime.api.sql.aggregate_parameters import OWN_AGGREGATES, without_parameter
from streams_runtime.api.sql.sql_tree import Problem, SqlSyntaxError, parse_expression, tokens_of

_AGGREGATES = """
any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor
bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set corr count count_if
count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id histogram_numeric
hll_sketch_agg hll_union_agg kurtosis last last_value listagg max max_by mean median min min_by mode
percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept
regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp string_agg
sum try_avg try_sum var_pop var_samp variance
"""
AGGREGATE_FUNCTIONS = frozenset(_AGGREGATES.split())
WINDOW_FUNCTIONS = frozenset(
    ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value")
)
_MULTIPLYING = """
explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple
"""
GENERATOR_FUNCTIONS = frozenset(_MULTIPLYING.split())
_OF_THE_BATCH = """
monotonically_increasing_id spark_partition_id input_file_name input_file_block_start input_file_block_length
window session_window window_time
"""
_MAKING_WINDOWS = frozenset(("window", "session_window"))
_WITHOUT_BRACKETS = frozenset(("current_date", "current_time", "current_timestamp", "localtimestamp"))
_OF_THE_MOMENT = _WITHOUT_BRACKETS | {
    "curdate",
    "now",
    "rand",
    "randn",
    "random",
    "randstr",
    "shuffle",
    "uniform",
    "uuid",
}
BATCH_DEPENDENT_FUNCTIONS = frozenset(_OF_THE_BATCH.split())


def scalar_problems(text: str, columns: Columns | None) -> list[Problem]:
    """Everything that is wrong with a scalar expression; `columns` is None when they are not known."""
    try:
        tree = parse_expression(text)
    except SqlSyntaxError as error:
        return [error.problem]
    problems = [*_shape_problems(tree, text), *(_name_problems(tree, text, columns) if columns else ())]
    return problems or [*(_type_problems(text, columns) if columns else ())]


def condition_problems(text: str, columns: Columns) -> Iterator[Problem]:
    """What a text is told that is known to be no condition; nothing for one with mistakes."""
    try:
        kind = columns.type_of(text)
    except SqlSyntaxError:
        return
    if kind is not None and not kind.is_type(exp.DType.BOOLEAN):
        yield Problem(f"{text!r} is {shown_type(kind)}, not a condition", f"compare it: {text} is not null", at=0)


def _type_problems(text: str, columns: Columns) -> Iterator[Problem]:
    """What Spark's analysis refuses, as far as its rules are known here."""
    for refused in columns.resolved(text).refusals if columns.by_rules else ():
        why = refused.why if refused.runs else f"is refused by Spark: {refused.why}"
        yield Problem(f"{refused.part!r} {why}", refused.remedy, refused.at)


def column_problems(tree: exp.Expr, columns: Columns) -> Iterator[Problem]:
    """References to columns that do not exist, each name once."""
    seen: set[tuple[str, ...]] = set()
    for column in tree.find_all(exp.Column, bfs=False):
        parts = tuple(part.name for part in column.parts)
        if parts in seen or isinstance(column.this, exp.Star):
            continue
        seen.add(parts)
        problem = columns.unknown(parts)
        if problem:
            yield problem


def _name_problems(tree: exp.Expr, text: str, columns: Columns) -> list[Problem]:
    """References to columns that do not exist; a name with a hyphen, which SQL reads as a minus, as one."""
    problems = list(column_problems(tree, columns))
    for name in columns.names if problems else ():
        pieces = _hyphenated(name, text)
        reported = {f"unknown column {piece!r}" for piece in pieces}
        if pieces and any(problem.found in reported for problem in problems):
            found = f"{name} is a name with a hyphen, which SQL reads as a minus"
            remedy = f'write it in backticks, and the whole expression in quotes, as in "`{name}`.column"'
            problems = [Problem(found, remedy), *(problem for problem in problems if problem.found not in reported)]
    return problems


def _hyphenated(name: str, text: str) -> tuple[str, ...]:
    """What the text has between the hyphens of such a name, where it has the name without backticks; else nothing."""
    if "-" not in name:
        return ()
    for _, start, _ in tokens_of(text):
        end = start + len(name)
        if text[start:end].lower() == name.lower() and not re.match(r"[\w-]", text[end : end + 1]):
            return tuple(text[start:end].split("-"))
    return ()


def moment_problems(text: str, consequence: str) -> Iterator[Problem]:
    """Functions that give another value each time that they are asked, in an expression that is asked several times.

    `consequence` says what comes of it, behind the function's name.
    """
    words = tuple(token.lower() for token, _, _ in tokens_of(text))
    for name in dict.fromkeys(word for word in words if word in _OF_THE_MOMENT):
        if name in called_functions(text) or name in _WITHOUT_BRACKETS:
            yield Problem(
                f"{name} {consequence}", "use what the record has, such as _timestamp, or pmod(hash(_key), 2) = 0"
            )


def called_functions(text: str) -> tuple[str, ...]:
    """Names of the functions that a parsed text calls, in small letters, each once."""
    words = ["", *(token.lower() for token, _, _ in tokens_of(text))]
    before_name_after = zip(words, words[1:], words[2:], strict=False)
    # In `x like any ('a', 'b')` any is no function.
    called = (name for before, name, after in before_name_after if after == "(" and before not in ("like", "ilike"))
    return tuple(dict.fromkeys(called))


def unfamiliar_functions(text: str) -> tuple[str, ...]:
    """Called functions of which only Spark can say whether they exist; none for a text with mistakes."""
    try:
        tree = parse_expression(without_parameter(text)[0])
    except SqlSyntaxError:
        return ()
    return tuple(
        dict.fromkeys(call.name for call in tree.find_all(exp.Anonymous) if call.name.lower() not in OWN_AGGREGATES)
    )


def _shape_problems(tree: exp.Expr, text: str) -> Iterator[Problem]:
    if tree.find(exp.Query):
        yield Problem("a sub-query", "use columns of the input only; merge brings streams together")
        return
    if not isinstance(tree, exp.Condition | exp.Func | exp.Interval | exp.Tuple):
        yield _not_one_value(tree, text)
        return
    if tree.find(exp.Window, exp.WithinGroup):
        yield Problem("a window function (OVER)", "use an aggregate step: a record does not see others")
        return
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        yield Problem("* stands for columns", "name the columns")
    if tree.find(exp.Placeholder, exp.Parameter):
        yield Problem("a parameter (? or :name)", "write the value itself")
    yield from _function_problems(tree, text)


def _not_one_value(tree: exp.Expr, text: str) -> Problem:
    if isinstance(tree, exp.Alias):
        return Problem(f"{text!r} names its result", "leave the name out; the field's name is the column's")
    if isinstance(tree, exp.Star):
        return Problem("* stands for columns", "name the columns")
    return Problem(f"{text!r} is not one expression", "write one Spark SQL expression")


def _function_problems(tree: exp.Expr, text: str) -> Iterator[Problem]:
    called = called_functions(text)
    aggregates = [name for name in called if name in AGGREGATE_FUNCTIONS | OWN_AGGREGATES]
    if not aggregates and tree.find(exp.AggFunc) and not any(name in WINDOW_FUNCTIONS for name in called):
        aggregates = ["an aggregate function"]
    for name in aggregates:
        yield Problem(f"{name} is an aggregate where one record's value is needed", "use it in an aggregate step")
    for name in called:
        if name in WINDOW_FUNCTIONS:
            yield Problem(f"{name} is a window function", "use an aggregate step: a record does not see others")
        elif name in GENERATOR_FUNCTIONS:
            yield Problem(
                f"{name} makes several rows of one",
                "make the records with a flatMap step before it: {explode: <the array>, as: <column>}",
            )
        elif name in _MAKING_WINDOWS:
            yield Problem(
                f"{name} makes windows of many records",
                "give the step that aggregates a window: window: {tumbling: {size: 10s}}",
            )
        elif name in BATCH_DEPENDENT_FUNCTIONS:
            yield Problem(f"{name} depends on how records fall into batches", "use _partition, _offset or _timestamp")
