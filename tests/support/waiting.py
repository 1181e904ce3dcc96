"""Waiting for a condition in a test, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

DEADLINE = 90.0  # seconds; only ever waited for in full by a test that fails
# A look that takes long is not taken again at once: tests wait on the processors on which it is to happen.
_PAUSE, _LONGEST_PAUSE = 2, 0.25  # times what the look took, and seconds


def eventually(
    condition: Callable[[], object],
    what: str | Callable[[], str] = "the condition came true",
    seconds: float = DEADLINE,
    every: float = 0.005,
) -> None:
    """Wait until `condition()` is true; fail and say `what` was waited for otherwise. `every`: seconds between looks
    that take none themselves.
    """
    begun = time.monotonic()
    deadline = begun + seconds
    while not condition():
        if (now := time.monotonic()) > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(max(every, min(_PAUSE * (now - begun), _LONGEST_PAUSE)))
        begun = time.monotonic()


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second one if it ends between opening and reading
        return False
