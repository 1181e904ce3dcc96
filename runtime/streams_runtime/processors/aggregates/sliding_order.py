"""What one record does to the sliding windows of its key, as KStreamSlidingWindowAggregate does it; of times only.

A key has a window that ends at each of its records' times, and one that begins right after it, if a record lies in it.
A record joins the windows that it lies in, and makes the two of its own, and the one right after the record before it,
where they are not there. What a new one begins with is what another one holds. Windows can't begin before 1970: a
record that is younger than the size of a window ends none, and all of these have the first window in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Parts = tuple["Parts", int] | None
"""Rows whose states together are a window's, the last one outermost; a window that begins as another shares them."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window as it comes to be: its start, the largest time of its records, and its parts. Times in ms."""

    start: int
    latest: int
    parts: Parts


@dataclass(slots=True)
class SlidingRecord:
    """One record's turn: `closed` is the time up to which windows have closed, those that end right then not included.

    `written` are the windows that become other, each once, in the order in which Kafka Streams passes them on (one that
    it writes twice in a row stands there once); `missed`: the starts of those that had closed.
    """

    size: int
    time: int
    row: int
    closed: int
    written: dict[int, Window] = field(default_factory=dict)
    missed: list[int] = field(default_factory=list)

    def take(self, found: Sequence[Window]) -> None:
        """Take the record in; `found` are the key's windows that start between time - 2 * size and time + 1, sorted."""
        if self.time < self.size:
            self._early(found)
        else:
            self._in_its_own(found)

    def _in_its_own(self, found: Sequence[Window]) -> None:
        left = right = before = None  # `before` is the time of the record before this one
        has_left = False
        for window in reversed(found):
            end = window.start + self.size
            if end < self.time:
                left, before = window, window.latest
                break
            if window.start > self.time:
                continue
            self._join(window.start, window.latest, window.parts)
            if end > self.time:
                right = right or window
            elif window.latest >= self.time:
                return  # a record of this time has made all windows
            else:
                has_left, before = True, window.latest
        if before is not None and before + 1 + self.size >= self.time:
            self._begin_after(before, found)
        if not has_left:
            shared = left.parts if left is not None and left.latest >= self.time - self.size else None
            self._join(self.time - self.size, self.time, shared)
        self._make_right(right, found)

    def _early(self, found: Sequence[Window]) -> None:
        first = next((each for each in found if each.start == 0), None)
        right = None
        for window in found:
            if 0 < window.start <= self.time:
                right = window
                self._join(window.start, window.latest, window.parts)
        self._make_right(right or first, found)
        if first is not None and first.latest < self.time:
            self._begin_after(first.latest, found)
        self._join(0, first.latest if first else self.time, first.parts if first else None)

    def _begin_after(self, before: int, found: Sequence[Window]) -> None:
        """The window right after the record before this one, which this one is the first in."""
        if all(window.start != before + 1 for window in found):
            self._join(before + 1, self.time, None)

    def _make_right(self, right: Window | None, found: Sequence[Window]) -> None:
        """The window right after this record, of the last one that began before it: nothing else can be in that one."""
        if right is None or right.latest <= self.time or (found and found[-1].start == self.time + 1):
            return
        self.written[self.time + 1] = Window(self.time + 1, right.latest, right.parts)

    def _join(self, start: int, latest: int, parts: Parts) -> None:
        if start + self.size < self.closed:
            self.missed.append(start)
        else:
            self.written[start] = Window(start, max(latest, self.time), (parts, self.row))
