"""Aggregates in Python: `python('package.module:Class', amount, weight * 2 as w)`, judged by their form alone.

The class is not looked for here: whoever reads a resource need not have the user's code.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from streams_runtime.api.schemas.ddl_schema import name_problems
from streams_runtime.api.sql.sql_tree import Problem, SqlSyntaxError, parse_expression, tokens_of

PYTHON = "python"
EXAMPLE = "python('package.module:Class', x)"
_NAME = r"[^\W\d]\w*"
_REFERENCE = re.compile(rf"{_NAME}(\.{_NAME})*:{_NAME}(\.{_NAME})*")


def is_python(text: str) -> bool:
    """Whether the text is a call of `python`, right or wrong."""
    try:
        tokens = tokens_of(text)
    except SqlglotError:
        return False
    return [token.lower() for token, _, _ in tokens[:2]] == [PYTHON, "("]


def parse_python(text: str) -> tuple[str, str]:
    """The class's name, and the columns that it takes as one expression: `struct(amount, weight * 2 as w)`.

    Raises SqlSyntaxError: the text is not exactly one such call.
    """
    tree = parse_expression(text)
    if not isinstance(tree, exp.Anonymous) or not is_python(text):
        raise SqlSyntaxError(
            Problem(f"{text!r} is more than the call", f"write {EXAMPLE} alone, and a select after it")
        )
    reference, *columns = tree.expressions or [exp.Null()]
    if not (isinstance(reference, exp.Literal) and reference.is_string):
        raise SqlSyntaxError(Problem(f"{text!r} does not begin with a class's name in quotes", f"write {EXAMPLE}"))
    if not _REFERENCE.fullmatch(reference.this):
        found = f"{reference.this!r} names no class"
        raise SqlSyntaxError(Problem(found, f"write package.module:Class, as in {EXAMPLE}"))
    if not columns:
        found = f"{text!r} gives the class no columns"
        raise SqlSyntaxError(Problem(found, f"name those that it needs, as in {EXAMPLE}; _timestamp is one too"))
    for problem in _name_problems(columns):
        raise SqlSyntaxError(problem)
    tokens = tokens_of(text)
    # From token to token: comments at either end are not part of the columns.
    return reference.this, f"struct({text[tokens[4][1] : tokens[-2][2] + 1]})"


def _name_problems(columns: list[exp.Expr]) -> list[Problem]:
    """Each column has a name: its own, or the one behind `as`."""
    for column in columns:
        if isinstance(column, exp.Star) or not isinstance(column, exp.Column | exp.Alias):
            sql = column.sql(dialect="spark")
            return [Problem(f"{sql!r} has no name among the columns that the class is given", f"write {sql} as name")]
    metadata = [column.name for column in columns if isinstance(column, exp.Column) and column.name.startswith("_")]
    return list(name_problems(tuple(column.output_name for column in columns if column.output_name not in metadata)))
