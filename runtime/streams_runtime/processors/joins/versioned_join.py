"""State side of a join with a table that has a history: what the table held for each record's key at the record's time.

Records and the table's changes have one order (batch.record_order): a record is joined with what was valid at its time
of all that the table had by its turn, as Kafka Streams does (KIP-914). Most records are no older than the
newest version of their key, and get that, all at once in whole columns. Only the others look into the history.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streams_runtime.batch.columns import MATCH, OUT_VALUE
from streams_runtime.batch.encode import encoded_column
from streams_runtime.batch.record_order import Vector, order_among
from streams_runtime.batch.stage import StageInput, StoreBatch
from streams_runtime.batch.vectors import integers
from streams_runtime.processors.joins.table_matches import asked_once, values_taken
from streams_runtime.processors.tables.table_versions import stream_times_of
from streams_runtime.state.database.segments import NO_TIME
from streams_runtime.state.versioned_store import Version, VersionedStore
from streams_runtime.topology.nodes.join_node import JoinNode

_NEVER = np.iinfo(np.int64).min  # the time of the newest version where there is none
_NOTHING = -1


def matched_versions(join: StageInput, changes: StoreBatch | None, stores: Mapping[int, VersionedStore]) -> pa.Table:
    """The records that go on, each with what was valid at its time for its key (MATCH); of an inner join those with a
    match.

    `changes` are the batch's versions of the table, nothing of which is in the stores yet.

    Raises ProcessorStateException: a store can't be read.
    """
    moments = _Moments.of(join, changes, stores)
    latest, times = moments.newest_before()
    behind = np.flatnonzero(moments.asks & (times > moments.times))
    found = np.where(moments.asks, latest, _NOTHING)
    older: list[bytes | None] = []
    for row, answer in _in_the_history(moments, behind, stores).items():
        found[row] = len(moments.asked) + moments.changes + len(older) if isinstance(answer, _Stored) else answer
        if isinstance(answer, _Stored):
            older.append(answer.value)
    of_records = found[moments.changes :]
    held = pa.array([None if each is None else each.value for each in moments.newest], pa.binary())
    changed = [] if changes is None else changes.columns[OUT_VALUE].chunks
    numbers = integers(of_records, of_records != _NOTHING)
    matches = values_taken([held, *changed, pa.array(older, pa.binary())], numbers)
    rows = join.rows.append_column(MATCH, matches)
    assert isinstance(join.node, JoinNode)
    return rows if join.node.left else rows.filter(rows[MATCH].is_valid())


@dataclass(frozen=True, slots=True)
class _Stored:
    """A value that a store holds in its history."""

    value: bytes | None


@dataclass(frozen=True, slots=True)
class _Moments:
    """A batch's versions of the table, as many as `changes`, and behind them its records: of each one what it asks for
    or changes (a number in `asked`), its partition, its place in the order, and its time in ms.

    `asks`: which are records with a key. `newest` is what the stores had before the batch for what is asked.
    """

    changes: int
    whose: Vector
    partitions: Vector
    order_numbers: Vector
    times: Vector
    has_key: np.ndarray[tuple[int], np.dtype[np.bool_]]
    asked: pa.Table
    newest: Sequence[Version | None]

    @classmethod
    def of(cls, join: StageInput, changes: StoreBatch | None, stores: Mapping[int, VersionedStore]) -> _Moments:
        """Those of a batch."""
        partitions = join.rows["_partition"].to_numpy().astype(np.int64)
        keys = encoded_column(join.rows["_key"])
        times = join.rows["_timestamp"].cast(pa.int64()).to_numpy() // 1000
        order_numbers = [np.arange(len(partitions))]
        if changes is not None and len(changes.keys):
            changing = changes.partitions.to_numpy().astype(np.int64)
            order_numbers = order_among((changing, changes.columns), (partitions, join.rows))
            partitions = np.concatenate([changing, partitions])
            keys = pa.concat_arrays([encoded_column(changes.keys), keys])
            times = np.concatenate([changes.timestamps.to_numpy().astype(np.int64), times])
        asked, whose = asked_once(partitions, keys)
        has_key = keys.is_valid().to_numpy(zero_copy_only=False)
        number = len(partitions) - len(join.rows)
        return cls(
            number, whose, partitions, np.concatenate(order_numbers), times, has_key, asked, _newest(asked, stores)
        )

    @property
    def asks(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of them are records with a key."""
        return self.has_key & self.is_record

    @property
    def is_record(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of them are records."""
        return np.arange(len(self.whose)) >= self.changes

    def newest_before(self) -> tuple[Vector, Vector]:
        """Of each the newest version of its key when its turn comes, as a number among what the stores have for what is
        asked and, behind that, the changes; and since when that is valid.
        """
        size = len(self.asked)
        begun = np.array([_NEVER if each is None else each.valid_from for each in self.newest], np.int64)
        moments, ranks = np.unique(np.concatenate([begun, self.times]), return_inverse=True)
        before, of_each = ranks[:size].astype(np.int64), ranks[size:].astype(np.int64)
        changing = self.has_key & ~self.is_record
        order = np.lexsort((self.order_numbers, self.whose))
        whose = self.whose[order]
        # Keys stand one behind the other, each in a range of its own, so that one running maximum serves all.
        own = np.maximum(np.where(changing, of_each, 0)[order], before[whose])
        reached = np.maximum.accumulate(own + whose * len(moments))
        at = np.arange(len(order))
        leads = changing[order] & (of_each[order] + whose * len(moments) == reached)
        last = np.maximum.accumulate(np.where(leads, at, -1))
        begin = np.maximum.accumulate(np.where(np.diff(whose, prepend=-1) != 0, at, 0))
        newest, times = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        newest[order] = np.where(last >= begin, size + order[last], whose)
        times[order] = moments[reached - whose * len(moments)]
        return newest, times


def _in_the_history(
    moments: _Moments, behind: Vector, stores: Mapping[int, VersionedStore]
) -> dict[int, int | _Stored]:
    """What records get that are older than the newest version of their key: the number of one of the batch's versions,
    behind what is asked, or what a store has; nothing where the history does not reach back to them.
    """
    if not len(behind):
        return {}
    reached = _stream_times(moments, stores)
    wanted = {row: int(moments.times[row]) for row in behind.tolist()}
    found: dict[int, int | _Stored] = dict.fromkeys(wanted, _NOTHING)
    concerned = np.flatnonzero(np.isin(moments.whose, moments.whose[behind]) & moments.has_key)
    so_far: dict[int, list[tuple[int, int, int]]] = {}  # by key the time, the place and the row of each version
    for row in concerned[np.argsort(moments.order_numbers[concerned], kind="stable")].tolist():
        number, partition = int(moments.whose[row]), int(moments.partitions[row])
        versions = so_far.setdefault(number, [])
        if row < moments.changes:
            insort(versions, (int(moments.times[row]), int(moments.order_numbers[row]), row))
            continue
        if row not in wanted or wanted[row] < stores[partition].reach(int(reached[row])):
            continue
        time = wanted[row]
        place = bisect_right(versions, time, key=lambda each: each[0])
        of_batch = versions[place - 1] if place else None
        stored = moments.newest[number]
        if stored is not None and stored.valid_from > time:
            stored = stores[partition].replaced_at(moments.asked["key"][number].as_py(), time)
        if of_batch is not None and (stored is None or of_batch[0] >= stored.valid_from):
            found[row] = len(moments.asked) + of_batch[2]
        elif stored is not None:
            found[row] = _Stored(stored.value)
    return found


def _stream_times(moments: _Moments, stores: Mapping[int, VersionedStore]) -> Vector:
    """How far stream time of each one's partition has come when its turn comes: by the table's versions alone."""
    order = np.argsort(moments.order_numbers, kind="stable")
    counted = np.where(moments.has_key & ~moments.is_record, moments.times, NO_TIME)
    reached = np.empty(len(order), np.int64)
    reached[order] = stream_times_of(moments.partitions[order], counted[order], stores)
    return reached


def _newest(asked: pa.Table, stores: Mapping[int, VersionedStore]) -> list[Version | None]:
    """What the stores have as the newest version of each key."""
    found: list[Version | None] = [None] * len(asked)
    partitions, keys = asked["partition"].to_numpy(), asked["key"].to_pylist()
    for partition in np.unique(partitions).tolist():
        rows = [row for row in np.flatnonzero(partitions == partition).tolist() if keys[row] is not None]
        rows.sort(key=keys.__getitem__)  # sorted keys are read faster
        versions = stores[partition].newest([keys[row] for row in rows])
        for row, version in zip(rows, versions, strict=True):
            found[row] = version
    return found
