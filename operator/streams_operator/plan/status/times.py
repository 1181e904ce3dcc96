"""Times in a status: whole seconds, as Kubernetes writes them."""

from __future__ import annotations

import math
from datetime import UTC, datetime


def text_of(seconds: float) -> str:
    """Seconds since 1970, without their fraction."""
    return datetime.fromtimestamp(math.floor(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def text_not_before(seconds: float) -> str:
    """The same, rounded up: nobody who waits for it is early."""
    return text_of(math.ceil(seconds))


def seconds_of(text: object) -> float | None:
    """What `text_of` wrote; None for anything else."""
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None
