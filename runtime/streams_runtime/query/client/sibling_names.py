"""Which names are those of instances of one application."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_ORDINAL: Final = re.compile(r"0|[1-9][0-9]{0,8}")


def is_sibling(own: str, other: str) -> bool:
    """Whether `other` is NAME-i with some ordinal i, where `own` is NAME-j."""
    name, _, _ = own.rpartition("-")
    others_name, _, ordinal = other.rpartition("-")
    return bool(name) and name == others_name and _ORDINAL.fullmatch(ordinal) is not None


def every_name(own: str, replicas: int, grouped: Collection[str]) -> tuple[str, ...]:
    """`own`, those of `grouped`, and NAME-0 up to the number of replicas where `own` is NAME-j; by name and ordinal."""
    name, _, ordinal = own.rpartition("-")
    wanted = [f"{name}-{each}" for each in range(replicas)] if name and _ORDINAL.fullmatch(ordinal) else []
    return tuple(sorted({own, *grouped, *wanted}, key=_by_ordinal))


def _by_ordinal(instance: str) -> tuple[str, int, str]:
    name, _, ordinal = instance.rpartition("-")
    return (name, int(ordinal), instance) if _ORDINAL.fullmatch(ordinal) else (instance, -1, instance)
