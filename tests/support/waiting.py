"""Waiting for a condition in a test, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

DEADLINE = 90.0  # seconds; only ever waited for in full by a test that fails


def eventually(
    condition: Callable[[], object],
    what: str | Callable[[], str] = "the condition came true",
    seconds: float = DEADLINE,
    every: float = 0.005,
) -> None:
    """Wait until `condition()` is true; fail and say `what` was waited for otherwise. It is looked at `every` s."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(every)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
