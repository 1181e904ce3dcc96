"""What an instance leaves behind for a moment: its Spark, which ends when it finds its instance gone."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

_TICK = 0.1


def sweep(groups: Collection[int], grace: float) -> bool:
    """Wait until no process of these process groups is left; after `grace` seconds, kill what is.

    True when all ended by themselves. Each instance leads a group of its own, numbered by its process id. It reads
    /proc: a machine without it has no processes to find.
    """
    wanted = frozenset(groups)
    deadline = time.monotonic() + grace
    while left := members(wanted):
        if time.monotonic() > deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(_TICK)
    return True


def members(groups: Collection[int]) -> frozenset[int]:
    """The processes of these groups; those that have ended and only wait for their parent do not count."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # After the name, which may hold anything: state, parent, group.
            state, _parent, group = entry.read_text().rpartition(")")[2].split()[:3]
            if int(group) in groups and state not in "ZX":
                found.add(int(entry.parent.name))
    return frozenset(found)
