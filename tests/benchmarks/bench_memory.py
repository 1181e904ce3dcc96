"""How much memory process trees have, and the most that they had at once, looked at from outside while they run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from bench_machine import PROC, process_stats

LOOK_S = 0.25
"""Seconds between two looks: a peak that lasts shorter is missed, and each look costs about a millisecond."""
MIB = 1024 * 1024
_HIGHER = 1.01  # adding up proportional sizes keeps a process from getting memory for ten milliseconds and more
_PAGE = os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """Use it in `with`; found are the largest sizes of each tree.

    `peaks_mib` are resident sizes, in which a page counts for each process that has it; `proportional_mib` are the
    sizes at these peaks, or within a hundredth of them, in which it counts once, as it does for a container's limit.
    `looks` are all that were found: seconds since the epoch, and the resident size of the largest tree in MiB.

    Nothing is found where the system has no /proc: the peaks are then 0.
    """

    def __init__(self, roots: Sequence[int]) -> None:
        self.peaks_mib = [0.0] * len(roots)
        self.proportional_mib = [0.0] * len(roots)
        self.looks: list[tuple[float, float]] = []
        self._added_up = [0.0] * len(roots)
        """Resident sizes at which the proportional ones were asked for last."""
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
            each_tree = trees(self._roots, processes())
            found = [sum(tree.values()) / MIB for tree in each_tree]
            for number, tree in enumerate(each_tree):
                self.peaks_mib[number] = max(self.peaks_mib[number], found[number])
                if found[number] > self._added_up[number] * _HIGHER:
                    self._added_up[number] = found[number]
                    shared_once = sum(proportional(pid, size) for pid, size in tree.items()) / MIB
                    self.proportional_mib[number] = max(self.proportional_mib[number], shared_once)
            self.looks.append((time.time(), max(found)))
            if self._end.wait(LOOK_S):
                return


def processes() -> dict[int, tuple[int, int]]:
    """Parent and resident bytes of every process that there is."""
    return {pid: (int(fields[1]), int(fields[21]) * _PAGE) for pid, fields in process_stats()}


def proportional(pid: int, otherwise: int) -> int:
    """Bytes of a process, of pages that n processes have an nth part; `otherwise` where it has ended or is not ours."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return otherwise
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), otherwise)


def trees(roots: Iterable[int], found: Mapping[int, tuple[int, int]]) -> list[dict[int, int]]:
    """Resident bytes by process of the tree under each root, itself included (pure)."""
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in found.items():
        children.setdefault(parent, []).append(pid)
    made = []
    for root in roots:
        tree: dict[int, int] = {}
        left = [root]
        while left:
            pid = left.pop()
            if pid in found:
                tree[pid] = found[pid][1]
            left += children.get(pid, [])
        made.append(tree)
    return made
