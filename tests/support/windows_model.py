"""Windowed aggregation record by record, as KStreamWindowAggregate does it: what every batch has to agree with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from zone_days import day_bounds

from streams_runtime.topology.nodes.window_kinds import TimeWindows

Window = tuple[int, str, int]
"""Partition, key and start."""


@dataclass
class WindowsModel:
    """Sums and counts by window. Times in ms."""

    windows: TimeWindows
    found: dict[Window, tuple[int, int, int]] = field(default_factory=dict)
    """Of each window the sum, the count, and the largest time."""
    missed: list[tuple[int, int, list[int]]] = field(default_factory=list)
    """Of each late record its partition, its number among all records, and the starts of the windows it missed."""
    records: int = 0
    stream_time: dict[int, int] = field(default_factory=lambda: defaultdict(lambda: -1))

    def process(self, partition: int, key: str, time: int, amount: int) -> None:
        """One record, after all that were processed before. One that no window can take moves no stream time."""
        if any(start >= 0 for start in self.starts(time)):
            self.stream_time[partition] = max(self.stream_time[partition], time)
        late: list[int] = []
        for start in self.starts(time):
            if start < 0 or self.end(start) + self.windows.grace <= self.stream_time[partition]:
                late.append(start)
                continue
            total, count, latest = self.found.get((partition, key, start), (0, 0, -1))
            self.found[partition, key, start] = (total + amount, count + 1, max(latest, time))
        if late:
            self.missed.append((partition, self.records, late))
        self.records += 1

    @property
    def late(self) -> int:
        """How often a record met a closed window."""
        return sum(len(starts) for *_, starts in self.missed)

    def end(self, start: int) -> int:
        """When a window ends."""
        if self.windows.timezone is None:
            return start + self.windows.size
        return day_bounds(self.windows.timezone, self.windows.size, self.windows.offset, start)[1]

    def starts(self, time: int) -> Iterator[int]:
        """TimeWindows.windowsFor, with an offset; before the first window there is one that takes nothing."""
        size, advance, offset = self.windows.size, self.windows.advance, self.windows.offset
        if self.windows.timezone is not None:
            yield day_bounds(self.windows.timezone, size, offset, time)[0]
            return
        start = min(max(0, time - size + advance - offset), time - offset) // advance * advance + offset
        while start <= time:
            yield start
            start += advance
