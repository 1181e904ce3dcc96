"""Waiting for a condition in a test, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

DEADLINE = 90.0  # seconds; only ever waited for in full by a test that fails
# A look that takes long is not taken again at once: tests wait on the processors on which it is to happen.
_PAUSE, _LONGEST_PAUSE = 2, 0.25  # times what the look took, and seconds
# One that was taken for seconds gets a twentieth of the time: what answers it computes as well.
_LONG_PAUSE, _LONGEST_LONG_PAUSE, _GROWTH = 20, 0.25, 5  # times what the look took, seconds, and times a second


def eventually(
    condition: Callable[[], object],
    what: str | Callable[[], str] = "the condition came true",
    seconds: float = DEADLINE,
    every: float = 0.005,
) -> None:
    """Wait until `condition()` is true; fail and say `what` was waited for otherwise. `every`: seconds between looks
    that take none themselves.
    """
    first = begun = time.monotonic()
    deadline = begun + seconds
    while not condition():
        if (now := time.monotonic()) > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(max(every, _pause(now - begun, now - first)))
        begun = time.monotonic()


def _pause(took: float, waited: float) -> float:
    """Seconds until the next look after one that took so many, so many after the first."""
    long = took * min(_PAUSE + _GROWTH * waited, _LONG_PAUSE)
    return max(min(_PAUSE * took, _LONGEST_PAUSE), min(long, _LONGEST_LONG_PAUSE))


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second one if it ends between opening and reading
        return False
