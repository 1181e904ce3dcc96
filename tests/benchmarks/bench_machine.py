"""How the processors were spent while a run lasted: by the benchmark, by other programs, or not at all."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """Shares of all processors, 0 to 1. A broker that was given, not embedded, is one of the others."""

    others: float
    idle: float


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds so far: of the clock, of work on all processors, and of work by this process and all under it."""

    at: float
    busy: float
    own: float


def adopt_orphans() -> None:
    """From now on, what a measured process leaves behind becomes a child of this one, and so counts as own.

    A JVM that outlives the Python process that started it would else count as another program's.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def read() -> Reading | None:
    """A reading now; None where the system has no /proc/stat."""
    try:
        # user nice system idle iowait irq softirq steal; guest time is in user already.
        ticks = [int(word) for word in (PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError:
        return None
    busy = (sum(ticks) - ticks[3] - ticks[4]) / TICKS
    return Reading(time.monotonic(), busy, _own())


def usage(before: Reading | None, after: Reading | None) -> Usage | None:
    """What happened between two readings."""
    if before is None or after is None:
        return None
    available = (after.at - before.at) * (os.cpu_count() or 1)
    busy = after.busy - before.busy
    others = busy - (after.own - before.own)
    return Usage(max(0.0, others / available), max(0.0, 1 - busy / available))


def _own() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(each.ru_utime + each.ru_stime for each in spent) + _descendants(os.getpid()) / TICKS


def _descendants(root: int) -> int:
    """Ticks of all live processes under `root`, with those of their children that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                # The command's name may hold blanks and brackets; the fields begin after its last bracket.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            ticks[int(folder.name)] = sum(int(field) for field in fields[11:15])
    return sum(ticks[pid] for pid in ticks if pid != root and _under(pid, root, parents))


def _under(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != root:
        pid = parents[pid]
    return pid == root
