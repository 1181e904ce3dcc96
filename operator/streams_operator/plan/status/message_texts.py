"""Texts of bounded length: the API server refuses longer ones, and a status is no log."""

from __future__ import annotations

from collections.abc import Sequence

EVENT_LENGTH = 1000  # bytes
"""Of an event's message; the API server takes 1024."""
CONDITION_LENGTH = 16_000
_SHOWN = 20  # names in a list


def clipped(text: str, length: int) -> str:
    """At most `length` bytes of UTF-8; what was left out is said."""
    data = text.encode()
    if len(data) <= length:
        return text
    return data[: length - 4].decode(errors="ignore") + " …"


def listed(names: Sequence[str]) -> str:
    """Names joined by commas, the first twenty of them."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
