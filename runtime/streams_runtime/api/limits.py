"""How large a document and its schemas may be, so that reading one takes seconds and no call is too deep for Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

LONGEST = 1 << 20
"""Bytes of a text; a ConfigMap, in which pods get their application, holds no more."""
DEEPEST = 64
"""Fields and lists in each other, and fields of a schema."""
MOST = 50_000
"""Values, those included that aliases and named types repeat; thousands of steps have fewer."""
TOO_LONG = f"a text of more than {LONGEST} bytes"
TOO_DEEP = f"more than {DEEPEST} levels in each other"
TOO_MANY = f"more than {MOST} values"
SHORTEN = "make it smaller"


def excess(document: object) -> str | None:
    """What makes a document of mappings and lists too large to be read; None where nothing does."""
    level: list[Any] = [document]
    count = depth = 0
    while level:
        depth, count = depth + 1, count + len(level)
        if depth > DEEPEST:
            return TOO_DEEP
        if count > MOST:
            return TOO_MANY
        level = [each for value in level for each in _inside(value)]
    return None


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()
