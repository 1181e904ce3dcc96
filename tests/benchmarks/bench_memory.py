"""The most memory that process trees had at once, looked at from outside while they run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

PROC = Path("/proc")
LOOK_S = 0.25
"""Seconds between two looks: a peak that lasts shorter is missed, and each look costs about a millisecond."""
MIB = 1024 * 1024
_PAGE = os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """Use it in `with`; `peaks_mib` are the largest resident sizes of each tree. Shared pages count for each process.

    Nothing is found where the system has no /proc: the peaks are then 0.
    """

    def __init__(self, roots: Sequence[int]) -> None:
        self.peaks_mib = [0.0] * len(roots)
        self._roots = roots
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            for number, size in enumerate(sizes(self._roots, processes())):
                self.peaks_mib[number] = max(self.peaks_mib[number], size / MIB)
            if self._end.wait(LOOK_S):
                return


def processes() -> dict[int, tuple[int, int]]:
    """Parent and resident bytes of every process that there is."""
    found = {}
    for folder in PROC.iterdir() if PROC.is_dir() else ():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found[int(folder.name)] = (int(fields[1]), int(fields[21]) * _PAGE)
    return found


def sizes(roots: Iterable[int], found: dict[int, tuple[int, int]]) -> list[int]:
    """Resident bytes of the tree under each root, itself included (pure)."""
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in found.items():
        children.setdefault(parent, []).append(pid)
    made = []
    for root in roots:
        total, left = 0, [root]
        while left:
            pid = left.pop()
            total += found.get(pid, (0, 0))[1]
            left += children.get(pid, [])
        made.append(total)
    return made
