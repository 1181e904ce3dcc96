"""Events of a local run: each a text for people and fields for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streams_runtime.errors import StreamsException


@dataclass(frozen=True, slots=True)
class RunEvent:
    """`event` names it for programs, with `facts`; an empty `text` is of no interest to people.

    A `problem` goes to stderr where text is printed.
    """

    event: str
    text: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    problem: bool = False


Report = Callable[[RunEvent], None]


def error_event(error: StreamsException) -> RunEvent:
    """The event of an exception that ends the run."""
    return RunEvent("error", f"error: {error}", {"class": type(error).__name__, "message": str(error)}, problem=True)
