"""Aggregates with a last argument that is no expression but a number: which percentile, how many values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot.errors import SqlglotError

from streams_runtime.api.sql.sql_tree import Problem, SqlSyntaxError, Token, tokens_of

TOP = "top"
OWN_AGGREGATES = frozenset({TOP})
"""Aggregates that Spark has no function for."""
LISTS = ("collect_list", "collect_set", TOP)
"""Those that give lists."""
MOST_COLLECTED = 1000
"""So many values at most does a list keep: it lies whole in one value of the store and of its changelog."""
MOST_DISTINCT = 10_000
"""So many different values does count(distinct …) count at most: they lie there like a list's."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A last argument: what it says, how it is written, a call that has it, and how many expressions come before it."""

    meaning: str
    pattern: re.Pattern[str]
    example: str
    expressions: int = 1


_HOW_MANY = re.compile(rf"[1-9][0-9]{{0,2}}|{MOST_COLLECTED}")
_NUMBER = f"a number from 1 to {MOST_COLLECTED}: how many values it keeps"
_SAYS_HOW_MANY = f"{_NUMBER}, the last ones"
PARAMETERS: Mapping[str, Parameter] = {
    "approx_percentile": Parameter(
        "a number from 0 to 1 with at most six digits behind the point",
        re.compile(r"0?\.[0-9]{1,6}|[01](\.0{0,6})?"),
        "approx_percentile(x, 0.95)",
    ),
    "collect_list": Parameter(_SAYS_HOW_MANY, _HOW_MANY, "collect_list(x, 10)"),
    "collect_set": Parameter(_SAYS_HOW_MANY, _HOW_MANY, "collect_set(x, 10)"),
    TOP: Parameter(_NUMBER, _HOW_MANY, "top(x, y, 10)", expressions=2),
}
"""By the names of the functions that need one."""


def without_parameter(text: str) -> tuple[str, str | None]:
    """The call without its parameter, and the parameter; the text as it is where the function takes none.

    Raises SqlSyntaxError: the parameter is missing, or is not what the function takes.
    """
    try:
        tokens = tokens_of(text)
    except SqlglotError:
        return text, None
    function = tokens[0][0].lower() if tokens else ""
    parameter = PARAMETERS.get(function)
    if parameter is None or len(tokens) < 2 or tokens[1][0] != "(":
        return text, None
    commas, end = arguments_of(tokens[1:])
    if end is None:
        return text, None
    remedy = f"write {parameter.example}"
    if len(commas) != parameter.expressions or tokens[2][0] == ",":
        takes = "a column" if parameter.expressions == 1 else "a value, what it goes by"
        raise SqlSyntaxError(Problem(f"{function} takes {takes} and {parameter.meaning}; found {text!r}", remedy))
    # From token to token, without comments.
    said = [(start, last) for _, start, last in tokens if commas[-1] < start < end]
    found = text[said[0][0] : said[-1][1] + 1] if said else ""
    if not parameter.pattern.fullmatch(found):
        what = f"found {found!r}" if found else "found nothing"
        raise SqlSyntaxError(Problem(f"{what} where {function} takes {parameter.meaning}", remedy))
    return text[: commas[-1]] + text[end:], found


def how_many(function: str, parameter: str | None) -> int | None:
    """How many values a list keeps at most; None: the function makes none."""
    if parameter is None or function not in LISTS:
        return None
    return int(parameter.rpartition(",")[2])


def arguments_of(tokens: Sequence[Token]) -> tuple[list[int], int | None]:
    """Where the commas between the arguments are, of tokens from a bracket on, and the bracket that closes it; None: it
    is not closed.
    """
    depth = 0
    commas: list[int] = []
    for token, start, _ in tokens:
        if token in ("(", "["):
            depth += 1
        elif token in (")", "]"):
            depth -= 1
            if depth == 0:
                return commas, start
        elif token == "," and depth == 1:
            commas.append(start)
    return commas, None
