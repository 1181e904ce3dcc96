"""Processor time of a process with all that it has started."""

from __future__ import annotations

import os
import time
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_LOOK = 0.5  # seconds of a phase from which on it is worth a look at all processes


class ProcessTimes:
    """Seconds of processors that a process and its descendants have had, from one look to the next.

    A look goes through all processes of the machine, some ms: short phases get what the process itself has had, and the
    rest of it comes to the next long one.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._own = time.process_time()
        self._seen = self._all()
        self._given = 0.0  # since the last look

    def since(self, wall: float) -> float:
        """The seconds of a phase that took `wall` seconds and ends now."""
        own, self._own = time.process_time() - self._own, time.process_time()
        if wall < _LOOK:
            self._given += own
            return own
        seen = self._all()
        # Less than before: a process that was nobody's child any more has ended, and took its time with it.
        had = max(seen - self._seen - self._given, own)
        self._seen, self._given = seen, 0.0
        return had

    def _all(self) -> float:
        """Seconds of the process, of its descendants, and of those that they have waited for."""
        stats = {}
        for folder in Path("/proc").iterdir() if Path("/proc/self/stat").exists() else ():
            if folder.name.isdigit():
                try:
                    # The name in brackets may have blanks and brackets in it.
                    parts = (folder / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue  # it has ended
                stats[int(folder.name)] = (int(parts[1]), sum(map(int, parts[11:15])) / _TICK)
        total = 0.0
        for pid, (_, seconds) in stats.items():
            each: int | None = pid
            while each is not None and each != self._pid:
                each = stats[each][0] if each in stats else None
            total += seconds if each == self._pid else 0.0
        return total
