"""What the end of an instance means, and the exit code that follows for the whole run."""

from __future__ import annotations

import enum
import signal
from collections.abc import Collection

from streams_runtime.states import EXIT_ERROR, EXIT_NOT_RUNNING, EXIT_UNUSABLE

INCOMPLETE = 1
"""Exit code of a run that did not end as it was meant to, without any instance in ERROR."""


class End(enum.Enum):
    """How an instance's process ended. Only a crash may be followed by a restart."""

    NOT_RUNNING = "closed in order"
    ERROR = "ended in ERROR"
    UNUSABLE = "could not use the file"
    CRASHED = "crashed"
    KILLED = "had to be killed"


def end_of(exit_code: int, stop_requested: bool, started: bool) -> End:
    """What an exit code means.

    `stop_requested`: the process was sent SIGTERM, and SIGKILL where it did not end; `started`: its client was up
    (before that, SIGTERM ends the process at once, with nothing to close).
    """
    if exit_code == EXIT_ERROR:
        return End.ERROR
    if exit_code == EXIT_UNUSABLE:
        return End.UNUSABLE
    if exit_code == EXIT_NOT_RUNNING or (stop_requested and not started and exit_code == -signal.SIGTERM):
        return End.NOT_RUNNING
    return End.KILLED if stop_requested and exit_code == -signal.SIGKILL else End.CRASHED


def exit_code_of(ends: Collection[End], complete: bool) -> int:
    """The exit code of a run; `complete`: it did what it was started for.

    70 when an instance ended in ERROR, 64 when one could not use the file, 1 when one crashed for good or had to be
    killed, or when the run is not complete; 0 otherwise.
    """
    if End.ERROR in ends:
        return EXIT_ERROR
    if End.UNUSABLE in ends:
        return EXIT_UNUSABLE
    return EXIT_NOT_RUNNING if complete and all(end is End.NOT_RUNNING for end in ends) else INCOMPLETE


def exit_text(exit_code: int) -> str:
    """An exit code for people: `exit code 1`, `signal SIGKILL`."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"signal {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"signal {-exit_code}"
