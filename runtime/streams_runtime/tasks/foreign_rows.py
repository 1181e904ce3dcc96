"""What both sides of a join by a foreign key go by: their table's changes and the other side's records, in turn.

As for other joins the order is that of the times that each topic's partition has come to; at the same time the table's
own change comes first (tasks/places.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from streams_runtime.pipeline.encode import encoded
from streams_runtime.pipeline.nodes import OUT_KEY, OUT_TIME, OUT_VALUE, moments
from streams_runtime.pipeline.runner import Emission, Keyed, TableRows
from streams_runtime.pipeline.tables import RAW_KEY, held_time, held_value
from streams_runtime.state.store import Updates, stamp, unstamp
from streams_runtime.state.stores import AnyStore
from streams_runtime.tasks.places import Place, places_among
from streams_runtime.tasks.task import Task
from streams_runtime.topology.table_parts import TableRoot

At = tuple[int, bytes]
"""Partition and key of a row of the table."""
Held = tuple[int, bytes] | None
"""Time (ms) and bytes of what the table's source holds; None where it holds nothing."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What a source holds from now on."""

    held: Held


_Row = tuple[Place, At, int, _Change | None, bytes | None]
"""Its turn, whose row it is about, its time in ms; a change, or a message."""


@dataclass(slots=True)
class Done:
    """What a side's part of a batch comes to; `rows` are those of the join's result that have changed."""

    emissions: list[Emission] = field(default_factory=list)
    updates: list[tuple[AnyStore, Updates]] = field(default_factory=list)
    rows: TableRows | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A change of the table's source, or a record of the other side (its value is the `message`).

    `before` and `after` are the numbers of the snapshots that it lies between; they are one for a message. Time in ms.
    """

    at: At
    time: int
    before: int
    after: int
    message: bytes | None = None


@dataclass(slots=True)
class Snapshots:
    """What the table's source holds for a key at the moments of a batch, in the order in which they come up."""

    keys: list[bytes] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    _now: dict[At, int] = field(default_factory=dict)

    def add(self, at: At, held: Held) -> int:
        """From now on; the number of the snapshot."""
        self._now[at] = len(self.keys)
        self.keys.append(at[1])
        self.held.append(held)
        return self._now[at]

    def now(self, at: At) -> int | None:
        """The number of the last snapshot of a key."""
        return self._now.get(at)

    def stored(self, number: int) -> bytes | None:
        """A snapshot as the store has it."""
        held = self.held[number]
        return None if held is None else stamp(*held)

    def table(self, numbers: Sequence[int] | None = None) -> pa.Table:
        """The snapshots with these numbers, or all of them, as Spark takes them."""
        chosen = range(len(self.keys)) if numbers is None else numbers
        held = [self.held[number] for number in chosen]
        times = pa.array([None if each is None else each[0] for each in held], pa.int64())
        return pa.table(
            {
                RAW_KEY: pa.array([self.keys[number] for number in chosen], pa.binary()),
                held_value(0): pa.array([None if each is None else each[1] for each in held], pa.binary()),
                held_time(0): moments(times),
            }
        )


def in_turn(
    source: TableRoot, changed: Keyed | None, arrived: pa.Table | None, tasks: Mapping[int, Task]
) -> tuple[list[Event], Snapshots]:
    """The batch's events of one side, and what its table's source holds between them; nothing is in the stores yet.

    Raises ProcessorStateException: a store can't be read.
    """
    several = [] if changed is None else [(changed.partitions.to_pylist(), changed.columns)]
    several += [] if arrived is None else [(arrived["_partition"].to_pylist(), arrived)]
    turns = places_among(*several)
    rows: list[_Row] = []
    if changed is not None:
        rows += _changes(changed, turns[0])
    if arrived is not None:
        rows += _messages(arrived, turns[-1])
    rows.sort(key=lambda row: row[0])
    first = _stored(source, {row[1] for row in rows}, tasks)
    snapshots = Snapshots()
    events = []
    for _, at, time, change, message in rows:
        before = snapshots.now(at)
        before = snapshots.add(at, first[at]) if before is None else before
        after = before
        if change is not None:
            after = snapshots.add(at, change.held)
        events.append(Event(at, time, before, after, message))
    return events, snapshots


def _messages(arrived: pa.Table, places: Sequence[Place]) -> Iterator[_Row]:
    """Records of the other side, which sends none without a key or a value: such are somebody else's."""
    told = zip(arrived["_partition"].to_pylist(), arrived[OUT_KEY].to_pylist(), strict=True)
    messages = zip(arrived[OUT_TIME].to_pylist(), arrived[OUT_VALUE].to_pylist(), strict=True)
    for place, (partition, key), (time, message) in zip(places, told, messages, strict=True):
        if key is not None and message is not None:
            yield place, (partition, key), time, None, message


def _changes(changed: Keyed, places: Sequence[Place]) -> Iterator[_Row]:
    """The changes of a table's source, of which those without a key are none."""
    partitions = changed.partitions.to_pylist()
    times = changed.columns["_timestamp"].cast(pa.int64()).to_pylist()
    held = zip(changed.timestamps.to_pylist(), changed.columns[OUT_VALUE].to_pylist(), strict=True)
    turns = zip(places, partitions, encoded(changed.keys), times, held, strict=True)
    for place, partition, key, micros, (time, value) in turns:
        if key is not None:
            yield place, (partition, key), micros // 1000, _Change(None if value is None else (time, value)), None


def _stored(source: TableRoot, wanted: set[At], tasks: Mapping[int, Task]) -> dict[At, Held]:
    """What the source's store has for the keys of these partitions, before the batch."""
    by_partition: dict[int, list[bytes]] = {}
    for partition, key in sorted(wanted):
        by_partition.setdefault(partition, []).append(key)
    found: dict[At, Held] = {}
    for partition, keys in by_partition.items():
        stored = tasks[partition].key_value_store(source.store).get_stored(keys)
        for key, each in zip(keys, stored, strict=True):
            found[partition, key] = None if each is None else unstamp(each)
    return found
