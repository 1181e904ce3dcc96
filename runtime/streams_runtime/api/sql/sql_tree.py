"""Spark SQL text to a syntax tree, without Spark; problems say where in the text."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError

from streams_runtime.api.spec.limits import DEEPEST, SHORTEN, TOO_DEEP
from streams_runtime.errors import Mistake

_DIALECT = "spark"
# It warns of statements that it only half understands; here these are mistakes, and reported as such.
logging.getLogger("sqlglot").setLevel(logging.ERROR)
# It tries a type's name before a bracket as a type first, then as a call: twice the time for each level.
_DEEPEST_TYPES = 8
_CLOSING = {")": "(", "]": "["}
# The checks of one application ask for the same text up to twenty times. Texts that are kept, and how long at most (in
# characters): of the longest expressions that is 20 MiB.
_KEPT, _LONGEST_KEPT = 256, 300
_BEGINS_AND_ENDS = {"'": "'", '"': '"', "`": "`", "--": "\n", "/*": "*/"}
_ESCAPING = ("'", '"')
Token = tuple[str, int, int]
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Problem:
    """What was found in a text and what would do; becomes a Mistake once the field is known.

    `at`: where in the text it is, where that is known.
    """

    found: str
    remedy: str
    at: int | None = None

    def in_field(self, path: str) -> Mistake:
        """The mistake at the field `path`."""
        return Mistake(path, self.found, self.remedy, self.at)


class SqlSyntaxError(ValueError):
    """The text can't be parsed; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.found}; {problem.remedy}")
        self.problem = problem


def _once(make: Callable[[str], Made]) -> Callable[[str], Made]:
    """`make`, which keeps what it has made of the latest texts, unless they are long."""
    kept = lru_cache(_KEPT)(make)

    @wraps(make)
    def made(text: str) -> Made:
        return (kept if len(text) <= _LONGEST_KEPT else make)(text)

    return made


@_once
def parse_expression(text: str) -> exp.Expr:
    """The tree of one expression, which others have too: copy it to change it.

    Raises SqlSyntaxError: show its problem beside the field.
    """
    return _parse(text, exp.Expr, "", "write one Spark SQL expression")


@_once
def parse_struct(ddl: str) -> exp.Expr:
    """The tree of `STRUCT<ddl>`, which others have too. Raises SqlSyntaxError, with positions inside `ddl`."""
    return _parse(ddl, exp.DataType, "STRUCT<", 'write columns as "name TYPE, name TYPE" with types that Spark has')


@_once
def tokens_of(text: str) -> Sequence[Token]:
    """(text, first position, last position) of each token, quotes included; comments are left out."""
    tokens = sqlglot.tokenize(text, dialect=_DIALECT)
    return tuple((text[token.start : token.end + 1], token.start, token.end) for token in tokens)


def place_in(text: str, index: int) -> str:
    """Where in the text that is, for messages: `character 7`, with the line where there are several."""
    line, column = text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
    return f"line {line}, character {column}" if "\n" in text else f"character {column}"


def _parse(text: str, into: type[exp.Expr], before: str, remedy: str) -> exp.Expr:
    if not text.strip():
        raise SqlSyntaxError(Problem("is empty", remedy))
    whole = f"{before}{text}\n>" if before else text
    try:
        _check_brackets_and_commas(text, remedy)
        if before:
            _check_depth(text)
        tree = sqlglot.parse_one(whole, dialect=_DIALECT, into=into)
    except ParseError as error:
        raise SqlSyntaxError(Problem(_where_and_why(error, text, len(before)), remedy + _hint(error))) from error
    except TokenError as error:
        raise SqlSyntaxError(_unfinished(text) or Problem(f"{text!r} has what SQL does not know", remedy)) from error
    except RecursionError as error:
        raise SqlSyntaxError(
            Problem("an expression that is nested too deeply", "split it over several steps")
        ) from error
    except SqlglotError as error:
        raise SqlSyntaxError(Problem(f"{text!r} can't be read: {error}", remedy)) from error
    return tree


def _unfinished(text: str) -> Problem | None:
    """The quote or comment that begins and does not end; None: there is none."""
    at = 0
    while at < len(text):
        sign = next((each for each in _BEGINS_AND_ENDS if text.startswith(each, at)), None)
        if sign is None:
            at += 1
            continue
        begun, at = at, at + len(sign)
        while at < len(text) and not text.startswith(_BEGINS_AND_ENDS[sign], at):
            at += 2 if sign in _ESCAPING and text[at] == "\\" else 1
        if at >= len(text) and sign != "--":
            remedy = f"close it; within a text it is \\{sign}" if sign in _ESCAPING else "close it"
            return Problem(f"{text!r} has a {sign} at {place_in(text, begun)} that is not closed", remedy)
        at += len(_BEGINS_AND_ENDS[sign])
    return None


def _check_brackets_and_commas(text: str, remedy: str) -> None:
    """What the parser forgives and Spark does not: `cast(a as int` and `f(a,,b)`."""
    opened: list[tuple[str, int]] = []
    types: list[bool] = []
    previous, found = ",", None
    for token, start, _ in tokens_of(text):
        if token in _CLOSING.values():
            opened.append((token, start))
            types = [*types[: len(opened) - 1], _is_type(previous)]
            if sum(types) > _DEEPEST_TYPES:
                deep = f"more than {_DEEPEST_TYPES} types or calls like {previous} in each other"
                raise SqlSyntaxError(Problem(f"{deep} at {place_in(text, start)}", "split it over several steps"))
        elif token in _CLOSING and (not opened or opened.pop()[0] != _CLOSING[token]):
            found = f"{text!r} has a {token!r} too many at {place_in(text, start)}"
        if (token == "," and previous in (",", "(", "[")) or (token in _CLOSING and previous == ","):
            found = found or f"{text!r} has nothing before the {token!r} at {place_in(text, start)}"
        previous = token
    if opened:
        found = found or f"{text!r} does not close the {opened[-1][0]!r} at {place_in(text, opened[-1][1])}"
    elif previous == ",":
        found = found or (f"{text!r} ends with a comma" if text.strip().endswith(",") else "is empty")
    if found:
        raise SqlSyntaxError(Problem(found, remedy))


def _check_depth(ddl: str) -> None:
    """Types in each other, which everything that reads them walks by calls of calls."""
    depth = 0
    for token, _, _ in tokens_of(ddl):
        depth += (token == "<") - (len(token) if not token.strip(">") else 0)
        if depth > DEEPEST:
            raise SqlSyntaxError(Problem(TOO_DEEP, SHORTEN))


def _is_type(word: str) -> bool:
    return Spark.tokenizer_class.KEYWORDS.get(word.upper()) in Spark.parser_class.TYPE_TOKENS


def _hint(error: ParseError) -> str:
    # Spark reads a word of SQL as a column's name wherever that makes sense; here it has to be marked as one.
    token = str(error.errors[0].get("highlight") or "") if error.errors else ""
    return f"; a column called {token} belongs in backticks" if token.isalpha() else ""


def _where_and_why(error: ParseError, text: str, offset: int) -> str:
    if not error.errors:
        return f"{text!r} can't be read"
    details = error.errors[0]
    description, token = str(details.get("description") or ""), str(details.get("highlight") or "")
    if description.startswith(("Required keyword", "Expected")):
        reason = "something is missing after"
    elif description == "Expecting >" and offset:
        reason = "expected a comma or a type that Spark has after"
    elif description.startswith("Expecting"):
        reason = f"expected {description.removeprefix('Expecting').strip()} after"
    else:
        reason = "unexpected"
    line, column = int(details.get("line") or 1), int(details.get("col") or len(token)) - len(token) + 1
    if line == 1:
        column -= offset
    at = f"line {line}, character {max(column, 1)}" if "\n" in text else f"character {max(column, 1)}"
    token = " ".join(token.split())
    return f"{text!r} has a mistake at {at}: {reason} {token!r}"
