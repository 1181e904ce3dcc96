"""How the processors were spent while a run lasted: by the benchmark, by other programs, or not at all."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

PROC = Path("/proc")
PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")
LOOK_S = 0.25
"""Seconds between two looks at processes that nobody will wait for."""


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


class Processors:
    """Use it in `with`; `usage` is how the processors were spent meanwhile, None where the system has no /proc/stat.

    Who ends under a process that ignores SIGCHLD, as Spark's Python workers do under their daemon, has its time counted
    nowhere any more. So such processes are looked at while they run, and what they had when last seen is added.
    """

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.unwaited_s = 0.0
        """Of such processes that have ended."""
        self._unwaited: dict[tuple[int, int], int] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="processors", daemon=True)

    def __enter__(self) -> Self:
        self._before = read()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self._thread.join()
        after = read()
        self._look()
        if after is not None:
            self.usage = usage(self._before, replace(after, own=after.own + self.unwaited_s))

    def _watch(self) -> None:
        while not self._end.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        found = _unwaited(os.getpid())
        self.unwaited_s += sum(self._unwaited[each] for each in self._unwaited.keys() - found.keys()) / TICKS
        self._unwaited = found


def process_stats() -> Iterator[tuple[int, list[str]]]:
    """The id of every process that there is, and the fields of its /proc/PID/stat behind the command's name."""
    for folder in PROC.iterdir() if PROC.is_dir() else ():
        if folder.name.isdigit():
            with suppress(OSError):
                # The name may hold blanks and brackets; the fields begin after its last bracket.
                yield int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()


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
    return sum(process.ticks for process in _under(root).values())


def _unwaited(root: int) -> dict[tuple[int, int], int]:
    """Ticks of those of them whose parents wait for no child, by process id and start."""
    found = _under(root)
    parents = {process.parent for process in found.values()}
    careless = {parent for parent in parents if parent in found and _ignores_children(parent)}
    return {(pid, each.start): each.ticks for pid, each in found.items() if each.parent in careless}


def _ignores_children(pid: int) -> bool:
    with suppress(OSError, StopIteration):
        status = (PROC / str(pid) / "status").read_text().splitlines()
        ignored = int(next(line for line in status if line.startswith("SigIgn:")).split()[1], 16)
        return bool(ignored >> (signal.SIGCHLD - 1) & 1)
    return False


@dataclass(frozen=True, slots=True)
class _Process:
    parent: int
    ticks: int
    start: int


def _under(root: int) -> dict[int, _Process]:
    """All live processes under `root`."""
    found = {
        pid: _Process(int(fields[1]), sum(map(int, fields[11:15])), int(fields[19])) for pid, fields in process_stats()
    }
    return {pid: each for pid, each in found.items() if pid != root and _is_under(pid, root, found)}


def _is_under(pid: int, root: int, found: dict[int, _Process]) -> bool:
    while pid in found and pid != root:
        pid = found[pid].parent
    return pid == root
