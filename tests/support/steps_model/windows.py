"""Aggregates by windows and sessions: KStreamWindowAggregate, -SlidingWindowAggregate and -SessionWindowAggregate."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from zone_days import day_bounds

from steps_model.folds import fold_of
from steps_model.formats import write_key
from steps_model.items import Change, Item, Row, Window
from steps_model.steps import Output, Spec, added, shown

State = Mapping[str, Any]


@dataclass
class Windows:
    """One task's windows of an aggregate. Times in ms."""

    spec: Spec
    grace: int
    states: dict[tuple[Any, Window], tuple[State, int]] = field(default_factory=dict)
    """By key and window: the state and the time of a window."""
    now: int = -1
    closed: int = -1
    """Up to which end suppress has passed windows on."""
    late: int = 0
    retention: int = 0
    written: int = -1
    """The latest time by which the store keeps any of them."""

    def __post_init__(self) -> None:
        self.folds = {name: fold_of(text) for name, text in self.spec["aggregate"].items()}

    def take(self, item: Item, source: str) -> Iterator[Output]:
        assert isinstance(item, Row)
        if item.key is None or self.drops(item):
            return
        before, self.now = self.now, max(self.now, item.time)
        for change in self.changes(item, before):
            if "suppress" not in self.spec:
                yield self.spec["name"], change
        if "suppress" in self.spec:
            yield from ((self.spec["name"], each) for each in self._final(item))

    def drops(self, row: Row) -> bool:
        """Whether it does not take a record that has a key."""
        return False

    def changes(self, row: Row, before: int) -> Iterator[Change]:
        """What the record changes; `before` is stream time without it."""
        raise NotImplementedError

    def last_end(self) -> int:
        """The latest end of a window that has closed."""
        return self.now - self.grace

    def rows(self) -> dict[tuple[Any, Window], tuple[dict[str, Any], int]]:
        """What the store shows, and of each window its time."""
        return {where: (shown(self.folds, state), time) for where, (state, time) in self.states.items()}

    def put(self, row: Row, window: Window, state: State, time: int) -> Change:
        """A window's new state."""
        old = self.states.get((row.key, window))
        self.written = max(self.written, self.kept_by(window))
        self.states[row.key, window] = (state, time)
        rows = [each and shown(self.folds, each) for each in (state, old and old[0])]
        return Change(row.key, rows[0], rows[1], time, row.headers, window, row.turn)

    def _final(self, row: Row) -> Iterator[Change]:
        last = self.last_end()
        found = [(key, window) for key, window in self.states if self.closed < window[1] <= last]
        self.closed = max(self.closed, last)
        for key, window in sorted(found, key=lambda each: (each[1][1], self.buffered(*each))):
            state, time = self.states[key, window]
            yield Change(key, shown(self.folds, state), None, time, (), window, row.turn)

    def buffered(self, key: Any, window: Window) -> bytes:
        """The key under which suppress keeps a window: of those that end at one time the least goes first."""
        return _bytes(key) + struct.pack(">q", window[0])

    def row(self, key: Any, window: Window | None = None) -> tuple[dict[str, Any], int] | None:
        """What the store shows of a window: one that has expired by those that were written is not there."""
        assert window is not None, "windows have no row for a key"
        found = self.states.get((key, window))
        if found is None or self.kept_by(window) <= self.written - self.retention:
            return None
        return shown(self.folds, found[0]), found[1]

    def kept_by(self, window: Window) -> int:
        """The time by which the store keeps a window."""
        return window[0]


@dataclass
class TimeWindows(Windows):
    """Tumbling and hopping windows."""

    size: int = 0
    advance: int = 0
    offset: int = 0
    timezone: str | None = None

    def changes(self, row: Row, before: int) -> Iterator[Change]:
        for window in self.around(row.time):
            if window[0] < 0 or window[1] + self.grace <= self.now:
                self.late += 1
                continue
            state, time = self.states.get((row.key, window), (None, row.time))
            yield self.put(row, window, added(self.folds, state, row), max(time, row.time))

    def around(self, time: int) -> Iterator[Window]:
        """The windows that a moment lies in."""
        if self.timezone is not None:
            yield day_bounds(self.timezone, self.size, self.offset, time)
            return
        since = time - self.offset
        start = min(max(0, since - self.size + self.advance), since) // self.advance * self.advance + self.offset
        for first in range(start, time + 1, self.advance):
            yield first, first + self.size


@dataclass
class SlidingWindows(Windows):
    """Windows around records, none of which may come late: grace is longer than the records are out of order."""

    size: int = 0
    taken: dict[Any, list[Row]] = field(default_factory=dict)

    def drops(self, row: Row) -> bool:
        return row.value is None

    def last_end(self) -> int:
        return self.now - self.grace - 1

    def changes(self, row: Row, before: int) -> Iterator[Change]:
        assert row.time >= before - self.grace, "no rules for late records here"
        assert row.time >= self.size, "no rules for windows that would begin before 1970 here"
        rows = self.taken.setdefault(row.key, [])
        former = [each.time for each in rows]
        rows.append(row)
        starts = sorted((window[0] for key, window in self.states if key == row.key), reverse=True)
        for start in (each for each in starts if each <= row.time <= each + self.size):
            yield self._window(row, start)
        earlier = max((time for time in former if time < row.time), default=None)
        new = [] if earlier is None or earlier + 1 + self.size < row.time else [earlier + 1]
        for start in (*new, row.time - self.size):
            if start not in starts:
                yield self._window(row, start)
                starts.append(start)
        later = any(row.time < time <= row.time + 1 + self.size for time in former)
        if later and row.time + 1 not in starts:
            yield self._window(row, row.time + 1)

    def _window(self, row: Row, start: int) -> Change:
        inside = [each for each in self.taken[row.key] if start <= each.time <= start + self.size]
        state: State | None = None
        for each in inside:
            state = added(self.folds, state, each)
        assert state is not None
        return self.put(row, (start, start + self.size), state, max(each.time for each in inside))


@dataclass
class Sessions(Windows):
    """Sessions: each the states of its records, in the order in which they were put together."""

    gap: int = 0

    def kept_by(self, window: Window) -> int:
        return window[1]

    def last_end(self) -> int:
        return self.now - self.grace - self.gap - 1

    def changes(self, row: Row, before: int) -> Iterator[Change]:
        mine = [window for key, window in self.states if key == row.key]
        joined = [
            each
            for each in mine
            if each[1] >= row.time - self.gap and each[0] <= row.time + self.gap and each[1] > before - self.retention
        ]
        joined.sort(key=lambda each: (each[1], each[0]))
        times = [row.time, *(each for window in joined for each in window)]
        whole = (min(times), max(times))
        if whole[1] < self.now - self.grace - self.gap:
            self.late += 1
            return
        state: State | None = None
        for each in joined:
            other = self.states[row.key, each][0]
            state = other if state is None else self._merged(state, other)
        state = added(self.folds, state, row)
        if whole != (row.time, row.time):
            for each in joined:
                gone, _ = self.states.pop((row.key, each))
                yield Change(row.key, None, shown(self.folds, gone), each[1], row.headers, each, row.turn)
        yield self.put(row, whole, state, whole[1])

    def buffered(self, key: Any, window: Window) -> bytes:
        return _bytes(key) + struct.pack(">qq", window[1], window[0])

    def _merged(self, one: State, other: State) -> State:
        return {name: fold.merge(one[name], other[name]) for name, fold in self.folds.items()}


def _bytes(key: Any) -> bytes:
    data = write_key(key)
    assert data is not None, "a record without a key is in no window"
    return data
