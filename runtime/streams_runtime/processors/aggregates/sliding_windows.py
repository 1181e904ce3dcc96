"""State side of an aggregate by sliding windows: a batch's records, one after the other, join what the store has.

A task's records are taken in the order of their offsets, whatever their keys: stream time is the task's, and so is the
time from which on its store shows windows. That is decided of times alone (processors.aggregates.sliding_order); states
follow in whole columns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streams_runtime.batch.columns import ORDER
from streams_runtime.batch.encode import encoded
from streams_runtime.batch.late_records import Missed
from streams_runtime.batch.stage import StoreBatch, TableRows
from streams_runtime.processors.aggregates.grouped_parts import ordinal_named, put_in_order
from streams_runtime.processors.aggregates.sliding_order import Parts, SlidingRecord, Window
from streams_runtime.processors.aggregates.store_updates import Merged
from streams_runtime.processors.segment_buffer import spans_of
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.store import Updates, unstamp
from streams_runtime.state.window_keys import split_window_key, window_key
from streams_runtime.state.window_store import WindowStore
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.window_kinds import SlidingWindows

_MOST_PARTS = 1_000_000
"""So many parts of windows are held, then they are put together: a record may join a thousand windows."""

Ordinal = tuple[int, bytes]
"""Partition and key."""
Change = tuple[int, Ordinal, Window]
"""A window that a record has changed: the record's row in the batch, its partition and key, and what it is then."""


@dataclass(slots=True)
class _KeyWindows:
    """One key's windows, of the store and of the batch: all that its records of the batch can reach."""

    by_start: dict[int, Window] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)

    def put(self, window: Window) -> None:
        if window.start not in self.by_start:
            insort(self.starts, window.start)
        self.by_start[window.start] = window

    def between(self, first: int, last: int) -> list[Window]:
        """Those that start between the times, both inclusive, the first one first."""
        found = self.starts[bisect_left(self.starts, first) : bisect_right(self.starts, last)]
        return [self.by_start[start] for start in found]


@dataclass(slots=True)
class _Task:
    """How far a partition has come: its stream time, and the start of the newest window, which its store goes by."""

    stream_time: int
    newest: int


class SlidingBatch:
    """A batch that meets the stores; `written` are the windows that it has changed, by the last change.

    `emitted`: a list that takes each change, in order; None where they are not asked for.
    """

    def __init__(
        self,
        state: AggregateState,
        store_batch: StoreBatch,
        stores: Mapping[int, AnyStore],
        emitted: list[Change] | None = None,
    ) -> None:
        self.ordinals, self._emitted = _ordinals(store_batch), emitted
        self._timed = timed = list(zip(self.ordinals, store_batch.timestamps.to_pylist(), strict=True))
        self._state, self._windows, self._store_batch = state, windows_of(store_batch), store_batch
        self._row_of = {ordinal: row for row, (ordinal, _) in enumerate(timed)}
        self._tasks: dict[int, _Task] = {}
        for number, store in stores.items():
            assert isinstance(store, WindowStore)
            self._tasks[number] = _Task(store.latest_timestamp, store.stream_time)
        self._keys, stored = _stored(timed, stores, self._windows)
        self._rows = pa.concat_tables([state.decode(stored), state.of_batch(store_batch.columns)])
        self._first_row = len(stored)  # the batch's rows come behind the stored states
        self._parts = 0
        self.written: dict[tuple[Ordinal, int], None] = {}

    @property
    def rows(self) -> pa.Table:
        """The rows that the parts of windows are numbers of."""
        return self._rows

    def is_record(self, row: int) -> bool:
        """Whether one of the rows is a record of the batch, and no state."""
        return 0 <= row - self._first_row < len(self._timed)

    def named(self, rows: Sequence[int]) -> str:
        """What messages call the key that these rows, of which one is a record, are of."""
        return ordinal_named(self._store_batch, next(row for row in rows if self.is_record(row)) - self._first_row)

    def named_key(self, ordinal: Ordinal) -> str:
        """What messages call a key of the batch."""
        return ordinal_named(self._store_batch, self._row_of[ordinal])

    def take_all(self) -> list[Missed]:
        """Take all records in their order; those that came too late for a window."""
        assert self._store_batch.within is not None
        orders = self._store_batch.within[ORDER].to_numpy()
        missed: list[Missed] = []
        for row in np.argsort(orders, kind="stable").tolist():
            ordinal, time = self._timed[row]
            if starts := self._take(ordinal, time, row):
                missed.append((ordinal[0], int(orders[row]), starts))
        return missed

    def _take(self, ordinal: Ordinal, time: int, row: int) -> list[int]:
        """Take the next record of its partition; `row` is its number in the batch. Gives the starts (ms) of the windows
        that it comes too late for.
        """
        windows, task, mine = self._windows, self._tasks[ordinal[0]], self._keys[ordinal]
        task.stream_time = max(task.stream_time, time)
        closed = task.stream_time - windows.grace
        if time + 1 + windows.size <= closed:
            return [max(time - windows.size, 0)]
        shown = task.newest - windows.retention + 1
        sliding = SlidingRecord(windows.size, time, self._first_row + row, closed)
        sliding.take(mine.between(max(time - 2 * windows.size, shown), time + 1))
        for window in sliding.written.values():
            mine.put(window)
            task.newest = max(task.newest, window.start)
            self.written.pop((ordinal, window.start), None)
            self.written[ordinal, window.start] = None
            if self._emitted is not None:
                self._emitted.append((row, ordinal, window))
        self._parts += len(sliding.written)
        if self._parts > _MOST_PARTS:
            self.settle()
        return sliding.missed

    def settle(self) -> pa.Table:
        """Put the parts of all windows together that the batch has written; their states, in the order of `written`."""
        cells = [(self._keys[ordinal], start) for ordinal, start in self.written]
        parts = [_numbers(mine.by_start[start].parts) for mine, start in cells]
        ordinals = [ordinal for ordinal, _ in self.written]
        contents = put_in_order(
            self._state,
            self._rows,
            parts,
            self._state.merge,
            lambda number: self.named_key(ordinals[number]),
        )
        for row, (mine, start) in enumerate(cells, len(self._rows)):
            mine.put(Window(start, mine.by_start[start].latest, (None, row)))
        self._rows, self._parts = pa.concat_tables([self._rows, contents]), 0
        return contents

    def windows(self) -> Iterator[tuple[Ordinal, Window]]:
        """What the batch has written."""
        return ((ordinal, self._keys[ordinal].by_start[start]) for ordinal, start in self.written)


def merged_sliding(state: AggregateState, store_batch: StoreBatch, stores: Mapping[int, AnyStore]) -> Merged:
    """Merge a batch's records into the stores' contents; writes nothing.

    Raises:
        StreamsException: a total left its range.
        FailedProcessingException: a count has too many values, or a class in Python failed.
        ProcessorStateException: a store can't be read.
    """
    batch = SlidingBatch(state, store_batch, stores)
    missed = batch.take_all()
    contents = batch.settle()
    lines = list(batch.windows())
    late = sum(len(starts) for *_, starts in missed)
    updates = sliding_updates(lines, state.encode(contents, lambda number: batch.named_key(lines[number][0])))
    changed = _rows(state, store_batch, batch.ordinals, lines, contents)
    return Merged(updates, changed, late, missed)


def windows_of(store_batch: StoreBatch) -> SlidingWindows:
    """The windows of a node that is known to have sliding ones."""
    assert isinstance(store_batch.node, AggregateNode)
    assert isinstance(store_batch.node.windows, SlidingWindows)
    return store_batch.node.windows


def _ordinals(store_batch: StoreBatch) -> list[Ordinal]:
    rows = zip(store_batch.partitions.to_pylist(), encoded(store_batch.keys), strict=True)
    return [(partition, key or b"") for partition, key in rows]


def _stored(
    timed: Iterable[tuple[Ordinal, int]], stores: Mapping[int, AnyStore], windows: SlidingWindows
) -> tuple[dict[Ordinal, _KeyWindows], list[bytes]]:
    """By key the windows of its store that the batch's records can reach, and their values, which are the parts."""
    found: dict[Ordinal, _KeyWindows] = {}
    values: list[bytes] = []
    for (partition, key), (first, last) in spans_of(timed).items():
        mine, store = found.setdefault((partition, key), _KeyWindows()), stores[partition]
        assert isinstance(store, WindowStore)
        there = [data for data, _ in store.fetch(key, key, max(first - 2 * windows.size, 0), last + 1)]
        for data, stored in zip(there, store.get_stored(there), strict=True):
            assert stored is not None
            latest, value = unstamp(stored)
            mine.put(Window(split_window_key(data)[1], latest, (None, len(values))))
            values.append(value)
    return found, values


def _numbers(parts: Parts) -> list[int]:
    """The rows that parts stand for, the first one first."""
    found = []
    while parts is not None:
        parts, row = parts
        found.append(row)
    return found[::-1]


def sliding_updates(lines: Iterable[tuple[Ordinal, Window]], values: Iterable[bytes]) -> dict[int, Updates]:
    """What each partition's store will have."""
    made: dict[int, tuple[list[bytes], list[bytes | None], list[int]]] = {}
    for ((partition, key), window), value in zip(lines, values, strict=True):
        keys, contents, times = made.setdefault(partition, ([], [], []))
        keys.append(window_key(key, window.start))
        contents.append(value)
        times.append(window.latest)
    return {partition: Updates(*columns) for partition, columns in made.items()}


def _rows(
    state: AggregateState,
    store_batch: StoreBatch,
    ordinals: Iterable[Ordinal],
    lines: list[tuple[Ordinal, Window]],
    contents: pa.Table,
) -> TableRows:
    """The same for the steps behind the aggregate, with the keys as Spark gave them."""
    row_of = {ordinal: row for row, ordinal in enumerate(ordinals)}
    starts = np.array([window.start for _, window in lines], np.int64)
    return TableRows(
        pa.array([partition for (partition, _), _ in lines], pa.int32()),
        store_batch.keys.take(pa.array([row_of[ordinal] for ordinal, _ in lines], pa.int64())),
        pa.array([window.latest for _, window in lines], pa.int64()),
        state.finish(contents),
        pa.array(starts),
        pa.array(starts + windows_of(store_batch).size),
    )
