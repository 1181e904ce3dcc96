"""Something that happened in a local run, told once: in words for people, as fields for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streams_runtime.errors import StreamsException


@dataclass(frozen=True, slots=True)
class News:
    """`event` names it for programs, with `facts`; an empty `text` is of no interest to people.

    A `problem` goes to stderr where text is printed.
    """

    event: str
    text: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    problem: bool = False


Say = Callable[[News], None]


def error_news(error: StreamsException) -> News:
    """What kept the run from going on."""
    return News("error", f"error: {error}", {"class": type(error).__name__, "message": str(error)}, problem=True)
