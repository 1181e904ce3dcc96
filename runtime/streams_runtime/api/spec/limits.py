"""How large a document and its schemas may be, so that reading one takes seconds and no call is too deep for Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from streams_runtime.api.reading.field_paths import path
from streams_runtime.errors import Mistake

LONGEST = 1 << 20
"""Bytes of a text; a ConfigMap, in which pods get their application, holds no more."""
DEEPEST = 64
"""Fields and lists in each other, and fields of a schema."""
MOST = 50_000
"""Values, those included that aliases and named types repeat; thousands of steps have fewer."""
LONGEST_FIELD = 1 << 18
"""Characters of one field: a schema of a thousand columns has fewer."""
MOST_ENTRIES = 5_000
"""Entries of one list or mapping."""
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


def oversized(value: object, *place: object) -> Iterator[Mistake]:
    """The fields at and below a place (the tokens of a path) that hold more than the resource's definition allows.

    `value` is not too large as a whole: see `excess`.
    """
    if isinstance(value, str) and len(value) > LONGEST_FIELD:
        yield Mistake(path(*place), f"has {len(value)} characters", f"use at most {LONGEST_FIELD}")
    if isinstance(value, Mapping | list | tuple) and len(value) > MOST_ENTRIES:
        yield Mistake(path(*place), f"has {len(value)} entries", f"use at most {MOST_ENTRIES}")
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from oversized(each, *place, name)
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from oversized(each, *place, index)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()
