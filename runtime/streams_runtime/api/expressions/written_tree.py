"""The tree of an expression in which each call has the name and the arguments that were written.

sqlglot's own tree of Spark SQL has one node for functions of several names (`nvl`, `ifnull`), and wraps arguments in
casts that nobody wrote: right for translating SQL, and no ground to find types on.
"""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

_SYNTAX = ("CAST", "TRY_CAST")
_KEPT = 256


class _Written(Spark):  # type: ignore[misc]
    """Spark SQL whose functions are all unknown by name."""

    class Parser(Spark.parser_class):  # type: ignore[misc]
        """Notes where each operand stands."""

        FUNCTIONS: dict = {}  # type: ignore[type-arg]  # noqa: RUF012
        FUNCTION_PARSERS = {name: Spark.parser_class.FUNCTION_PARSERS[name] for name in _SYNTAX}  # noqa: RUF012
        NO_PAREN_FUNCTION_PARSERS = {"CASE": Spark.parser_class.NO_PAREN_FUNCTION_PARSERS["CASE"]}  # noqa: RUF012

        def _parse_unary(self) -> exp.Expr | None:
            start = self._curr.start if self._curr else 0
            signed = self._curr is not None and self._curr.token_type == TokenType.PLUS
            made: exp.Expr | None = super()._parse_unary()
            if made is not None and signed:
                # sqlglot leaves the sign out, and Spark takes it for a function of numbers.
                made = exp.Anonymous(this="positive", expressions=[made])
            if made is not None and self._prev:
                made.meta["start"] = min(start, made.meta.get("start", start))
                made.meta["end"] = max(self._prev.end, made.meta.get("end", 0))
            return made


@lru_cache(_KEPT)
def written_tree(text: str) -> exp.Expr | None:
    """The tree, which others have too; None of a text that sqlglot does not read."""
    try:
        return sqlglot.parse_one(text, dialect=_Written, into=exp.Expr)
    except (SqlglotError, RecursionError):
        return None


def span(node: exp.Expr, text: str) -> tuple[int, str]:
    """Where in the text a part begins, and what it is called there."""
    starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
    ends = [each.meta["end"] for each in node.walk() if "end" in each.meta]
    if not starts:
        return 0, text
    start, end = min(starts), max(ends) + 1
    while text.count("(", start, end) > text.count(")", start, end) and ")" in text[end:]:
        end = text.index(")", end) + 1  # what closes a call has no node
    return start, text[start:end]
