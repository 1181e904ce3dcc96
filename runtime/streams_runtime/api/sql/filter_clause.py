"""`agg(…) FILTER (WHERE condition)`: the call and its condition, each in the user's own text."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.errors import SqlglotError

from streams_runtime.api.sql.sql_tree import Problem, SqlSyntaxError, Token, parse_expression, tokens_of

_EXAMPLE = "write count(*) FILTER (WHERE amount > 0)"


def without_filter(text: str) -> tuple[str, str | None]:
    """The call without its filter, and the condition; the text as it is where the filter is not all that follows.

    Raises SqlSyntaxError: there is no condition, or it can't be read.
    """
    try:
        tokens = tokens_of(text)
    except SqlglotError:
        return text, None
    at = _clause(tokens)
    if at is None:
        return text, None
    words = [token.lower() for token, _, _ in tokens[at + 1 : at + 3]]
    if words != ["(", "where"] or len(tokens) < at + 5:
        raise SqlSyntaxError(Problem(f"{text!r} has a FILTER without a condition", _EXAMPLE))
    condition = text[tokens[at + 3][1] : tokens[-2][2] + 1]
    parse_expression(condition)
    return text[: tokens[at - 1][2] + 1], condition


def _clause(tokens: Sequence[Token]) -> int | None:
    """The number of the word FILTER, whose brackets are the last thing in the text; None where there is none."""
    depth, found = 0, None
    for number, (token, _, _) in enumerate(tokens):
        if depth == 0 and found is not None and number > found + 1:
            return None
        if token in ("(", "["):
            depth += 1
        elif token in (")", "]"):
            depth -= 1
        elif depth == 0 and token.lower() == "filter" and number and tokens[number - 1][0] == ")":
            found = number
    return found if depth == 0 else None
