"""What a store in segments of time keeps of some keys, as it comes to be while a batch's records take their turns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import split_window_key, window_key
from streams_runtime.state.window_store import SegmentedStore

NO_TIME = -1
K = TypeVar("K")
Spans = Mapping[bytes, tuple[int, int]]
"""By key the first and the last time (ms) of a batch's records."""


@dataclass(slots=True)
class SegmentBuffer:
    """The records of some keys that a store keeps for `retention` ms, by key: time (ms), number among equals, value.

    `time` is the largest one of all that the store has been given.
    """

    retention: int
    time: int = NO_TIME
    records: dict[bytes, list[tuple[int, int, bytes]]] = field(default_factory=dict)
    new: list[tuple[bytes, int, int, bytes]] = field(default_factory=list)
    """Key, time, number and value of what was not there before."""
    late: int = 0
    """How many records had expired already when they came."""

    def between(self, key: bytes, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """Time and value of the key's records that have not expired, in their order."""
        records = self.records.get(key, ())
        at = bisect_left(records, (max(first, self.time - self.retention + 1),))
        for time, _, value in records[at:]:
            if time > last:
                return
            yield time, value

    def put(self, key: bytes, time: int, value: bytes) -> None:
        """Keep a record, unless it has expired already, so that nothing that is still to come can meet it."""
        self.time = max(self.time, time)
        if time <= self.time - self.retention:
            self.late += 1
            return
        records = self.records.setdefault(key, [])
        at = bisect_left(records, (time + 1,))
        number = records[at - 1][1] + 1 if at and records[at - 1][0] == time else 0
        records.insert(at, (time, number, value))
        self.new.append((key, time, number, value))

    def updates(self) -> Updates:
        """What is new, for the store."""
        keys = [window_key(key, time, number) for key, time, number, _ in self.new]
        return Updates(keys, [value for *_, value in self.new], [time for _, time, *_ in self.new])


def spans_of(timed: Iterable[tuple[K, int]]) -> dict[K, tuple[int, int]]:
    """The first and the last time of each key, from the keys and times of all records."""
    spans: dict[K, tuple[int, int]] = {}
    for key, time in timed:
        first, last = spans.get(key, (time, time))
        spans[key] = min(first, time), max(last, time)
    return spans


def buffered_in(store: SegmentedStore, spans: Spans, reach: int) -> SegmentBuffer:
    """What the store has of each key up to `reach` ms before its span and behind it.

    Raises ProcessorStateException: the store can't be read.
    """
    kept = SegmentBuffer(store.retention, store.stream_time)
    for key, (first, last) in spans.items() if not store.is_empty() else ():
        pairs = store.fetch(key, key, first - reach, last + reach)
        if found := [(*split_window_key(data)[1:], value) for data, value in pairs]:
            kept.records[key] = found
    return kept
