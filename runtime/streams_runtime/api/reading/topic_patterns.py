"""Patterns of topics: regular expressions in RE2's syntax, which brokers have for subscriptions, too (KIP-848).

RE2 takes a time that is linear in the name's length, whatever the pattern, so that no resource can hold up the operator
that checks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


def pattern_problem(pattern: str) -> tuple[str, str] | None:
    """What is wrong with a pattern and what would do; None when it can be used."""
    import pyarrow as pa  # a start without patterns needs no Arrow for its checks
    import pyarrow.compute as pc

    if not pattern:
        return "an empty pattern, which no topic's name fits", "give a regular expression, such as orders-.*"
    try:
        pc.match_substring_regex(pa.scalar(""), pattern=pattern)  # as it stands: in brackets a)|(b would do
    except pa.ArrowInvalid as error:
        reason = str(error).partition("Invalid regular expression: ")[2] or str(error)
        found = f"found {pattern!r}, which is no regular expression in RE2's syntax: {reason}"
        return found, "correct it; what stands around the names, such as (?=…), is not there in RE2"
    return None


@lru_cache(maxsize=65_536)
def fits(pattern: str, topic: str) -> bool:
    """Whether a topic's whole name fits the pattern, which `pattern_problem` finds nothing wrong with."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.match_substring_regex(pa.scalar(topic), pattern=rf"\A(?:{pattern})\z")
    return bool(found.as_py())


def fitting(pattern: str, topics: Iterable[str]) -> tuple[str, ...]:
    """Those of the topics that fit, in their order."""
    return tuple(each for each in topics if fits(pattern, each))
