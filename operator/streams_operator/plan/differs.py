"""Whether applying an object would change anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

from streams_operator.model import Json

_KEYS: Mapping[str, tuple[str, ...]] = {"ownerReferences": ("uid",), "ports": ("port", "protocol")}
"""Lists that the API server merges by these keys: entries of others stay, and their order means nothing."""
_SETS = frozenset({"finalizers"})


def differs(desired: Json, existing: Json | None) -> bool:
    """Whether server-side applying `desired` would change `existing` (None: it is not there).

    True exactly when some field of `desired` is not there or is another one. Fields that only `existing` has belong to
    the API server's defaults or to others. Lists have to agree entry by entry, except those that Kubernetes merges by
    key. Quantities are compared as they are written.
    """
    return existing is None or not _within(desired, existing, "")


def _within(desired: Any, existing: Any, field: str) -> bool:
    # Plain dicts and lists only: asking for a Mapping takes twice as long, in what each round spends most of its time.
    if existing is None:
        # The API server leaves out what is empty.
        return desired is None or desired in ({}, [])
    if isinstance(desired, dict):
        return isinstance(existing, dict) and all(
            _within(value, existing.get(name), name) for name, value in desired.items()
        )
    if isinstance(desired, list):
        there = existing if isinstance(existing, list) else []
        if field in _SETS:
            return set(desired) <= set(there)
        if field in _KEYS:
            return _merged(desired, there, _KEYS[field])
        return len(desired) == len(there) and all(map(_within, desired, there, repeat("")))
    # 1 and True are equal to Python, and not to JSON.
    return bool(desired == existing) and isinstance(desired, bool) == isinstance(existing, bool)


def _merged(desired: Sequence[Any], existing: Sequence[Any], keys: tuple[str, ...]) -> bool:
    there = {tuple(entry.get(key) for key in keys): entry for entry in existing if isinstance(entry, dict)}
    return all(
        (entry := there.get(tuple(wanted.get(key) for key in keys))) is not None and _within(wanted, entry, "")
        for wanted in desired
    )
