"""What the sources of tables hold for a key at the moments of a batch, and the changes between these moments.

A change is the step from one snapshot of its key to another. The changes of all sources that joins bring together have
one order (batch.record_order), and so have the records that the other side of a join by a foreign key sends: one of
those lies within a snapshot. Of a source with several copies (topology.table_copies) each change is one of each copy,
beside which the other copies hold what the source holds from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from streams_runtime.batch.columns import OUT_KEY, OUT_TIME, OUT_VALUE
from streams_runtime.batch.record_order import Ordinal, fork_paths_of, ordinals_among
from streams_runtime.batch.rows import moments
from streams_runtime.batch.snapshot_columns import RAW_KEY, SHOWN, held_time, held_value
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.window_changes import held_in
from streams_runtime.processors.tables.store_clock import StoreClock
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.shown_values import Shown
from streams_runtime.state.store import stamp
from streams_runtime.topology.table_parts import TablePart

At = tuple[int, bytes]
"""Partition and key of a row."""
Held = tuple[int | None, bytes | None]
"""Time (ms) and bytes of what a source holds for a key; None and None where it holds nothing."""
_NOTHING: Held = (None, None)


class Snapshot(NamedTuple):
    """What each copy of a source holds for a key. `shown`: whether it is there after a change, not only before one."""

    key: bytes
    held: tuple[Held, ...]
    shown: bool

    @property
    def stored(self) -> bytes | None:
        """All of it as bytes, other ones for another snapshot of the key; None where no source holds anything."""
        several = [b"" if time is None or value is None else stamp(time, value) for time, value in self.held]
        if len(several) > 1 and any(several):
            return b"".join(len(each).to_bytes(4, "big") + each for each in several)
        return several[0] or None


class Event(NamedTuple):
    """A change of one of the sources, or a record of the other side of a join by a foreign key (`message`).

    `source` is the number of the copy that changes, `change` that of the change in the batch; `before` and `after` are
    the numbers of the snapshots that the event lies between, which are one for a message. `time` is that of the record,
    in ms; `headers` its headers, `ordinal` where it is, `way` which of its rows.
    """

    at: At
    time: int
    before: int
    after: int
    ordinal: Ordinal
    source: int = 0
    message: bytes | None = None
    headers: Any = None
    way: Sequence[int] = ()
    change: int = 0


@dataclass(slots=True)
class Events:
    """A batch's events in turn, and the snapshots that they lie between, in the order in which they come up."""

    sequence: list[Event] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)

    def table(self, numbers: Sequence[int] | None = None) -> pa.Table:
        """The snapshots with these numbers, or all of them, as Spark takes them; at least one."""
        chosen = self.snapshots if numbers is None else [self.snapshots[number] for number in numbers]
        columns = {
            RAW_KEY: pa.array([each.key for each in chosen], pa.binary()),
            SHOWN: pa.array([each.shown for each in chosen], pa.bool_()),
        }
        for index, of_source in enumerate(zip(*(each.held for each in chosen), strict=True)):
            times, values = zip(*of_source, strict=True)
            columns[held_value(index)] = pa.array(values, pa.binary())
            columns[held_time(index)] = moments(pa.array(times, pa.int64()))
        return pa.table(columns)


class Stores(Protocol):
    """Knows how what a store holds becomes what is seen of it."""

    def shown_by(self, table: str) -> Shown:
        """By the node that keeps the table."""


class _Row(NamedTuple):
    """An event before its snapshots are known. `held` is what the source holds from now on; None for a message."""

    ordinal: Ordinal
    at: At
    time: int
    source: int = 0
    held: Held | None = None
    message: bytes | None = None
    headers: Any = None
    way: Sequence[int] = ()


def events_of(
    part: TablePart,
    changed: Mapping[str, StoreBatch],
    tasks: Mapping[int, Mapping[str, AnyStore]],
    stores: Stores,
    arrived: pa.Table | None = None,
) -> Events:
    """The batch's changes of the part's sources (`changed`, by their names) and records of the other side, in turn.

    Nothing of the batch is in the stores yet.

    Raises ProcessorStateException: a store can't be read.
    """
    there = {index: changed[node.name] for index, node in enumerate(part.sources) if node.name in changed}
    several = [(store_batch.partitions.to_pylist(), store_batch.columns) for store_batch in there.values()]
    several += [] if arrived is None else [(arrived["_partition"].to_pylist(), arrived)]
    several_ordinals = ordinals_among(*several)
    rows = [
        row
        for (source, store_batch), ordinals in zip(there.items(), several_ordinals, strict=False)
        for row in _changes(source, store_batch, ordinals)
    ]
    if arrived is not None:
        rows += _messages(arrived, several_ordinals[-1])
    rows.sort(key=lambda row: row.ordinal)
    current = _held(part, {row.at for row in rows}, tasks, stores)
    clock = StoreClock.of(part, tasks)
    found = _Found([copy.source for copy in part.copies.sources])
    for number, row in enumerate(rows):
        held = current[row.at]
        before = held[row.source]
        if row.held is not None:
            held[row.source] = row.held
            clock.put(row.at, row.source)
        found.add(row, number, clock.shown(row.at, held), before)
    return found.events


@dataclass(slots=True)
class _Found:
    """The events so far. `sources`: the source of each copy; `latest`: by partition and key the last snapshot."""

    sources: Sequence[int]
    events: Events = field(default_factory=Events)
    latest: dict[At, int] = field(default_factory=dict)

    def add(self, row: _Row, number: int, shown: Sequence[Held], before: Held) -> None:
        """The events of one row: one of each copy of what changes, which held `before`; `shown` is by sources."""
        there = [shown[source] for source in self.sources]
        if row.held is None:
            at = self._before(row.at, tuple(there))
            self._event(row, number, at, at)
            return
        copies = [copy for copy, source in enumerate(self.sources) if source == row.source]
        # A change says itself what is new, whether or not its store still shows it.
        olds, news = ([_with(there, copy, held) for copy in copies] for held in (before, row.held))
        befores = [self._before(row.at, old) for old in olds]
        for copy, old, new in zip(copies, befores, news, strict=True):
            if copy == copies[0] or self.events.snapshots[-1].held != new:
                self.latest[row.at] = len(self.events.snapshots)
                self.events.snapshots.append(Snapshot(row.at[1], new, shown=True))
            self._event(row, number, old, self.latest[row.at], copy)

    def _event(self, row: _Row, number: int, before: int, after: int, copy: int = 0) -> None:
        what = (row.ordinal, copy, row.message, row.headers, row.way, number)
        self.events.sequence.append(Event(row.at, row.time, before, after, *what))

    def _before(self, at: At, held: tuple[Held, ...]) -> int:
        """The number of a snapshot before a change: the last one of its key, unless that is another."""
        latest = self.latest.get(at)
        if latest is None or self.events.snapshots[latest].held != held:
            latest = len(self.events.snapshots)
            self.latest.setdefault(at, latest)
            self.events.snapshots.append(Snapshot(at[1], held, shown=False))
        return latest


def _with(there: Sequence[Held], copy: int, held: Held) -> tuple[Held, ...]:
    return (*there[:copy], held, *there[copy + 1 :])


def _changes(source: int, store_batch: StoreBatch, ordinals: Sequence[Ordinal]) -> Iterator[_Row]:
    """The changes of a source, of which those without a key are none."""
    partitions, keys = store_batch.partitions.to_pylist(), store_batch.keys.to_pylist()
    held = zip(store_batch.timestamps.to_pylist(), store_batch.columns[OUT_VALUE].to_pylist(), strict=True)
    times = store_batch.columns["_timestamp"].cast(pa.int64()).to_pylist()
    there = "_headers" in store_batch.columns.column_names  # where something asks for them
    headers = store_batch.columns["_headers"].to_pylist() if there else [None] * len(keys)
    columns = (ordinals, partitions, keys, held, times, headers, fork_paths_of(store_batch.columns))
    for ordinal, partition, key, (time, value), micros, header, way in zip(*columns, strict=True):
        if key is not None:
            now = _NOTHING if value is None else (time, value)
            yield _Row(ordinal, (partition, key), micros // 1000, source, now, headers=header, way=way)


def _messages(arrived: pa.Table, ordinals: Sequence[Ordinal]) -> Iterator[_Row]:
    """Records of the other side, which sends none without a key or a value: such are somebody else's."""
    names = ("_partition", OUT_KEY, OUT_TIME, OUT_VALUE)
    columns = (ordinals, *(arrived[name].to_pylist() for name in names))
    for ordinal, partition, key, time, message in zip(*columns, strict=True):
        if key is not None and message is not None:
            yield _Row(ordinal, (partition, key), time, message=message)


def _held(
    part: TablePart, wanted: set[At], tasks: Mapping[int, Mapping[str, AnyStore]], stores: Stores
) -> dict[At, list[Held]]:
    """What each source's store has for the keys of these partitions, before the batch."""
    found: dict[At, list[Held]] = {at: [] for at in wanted}
    by_partition: dict[int, list[bytes]] = {}
    for partition, key in sorted(wanted):
        by_partition.setdefault(partition, []).append(key)
    for partition, keys in by_partition.items():
        for node in part.sources:
            held = [each or _NOTHING for each in held_in(tasks[partition][node.store], keys)]
            values = stores.shown_by(node.name)([value for _, value in held])
            for key, (time, _), value in zip(keys, held, values, strict=True):
                found[partition, key].append((time, value))
    return found
