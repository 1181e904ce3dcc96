"""State side of an aggregate by sessions: a batch's fragments join what the store has, and each other.

Fragments of a key are taken in their order, each as processors.aggregates.session_order says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streams_runtime.batch.columns import FRAGMENT_COLUMNS
from streams_runtime.batch.encode import encoded
from streams_runtime.batch.late_records import Missed, sure_age
from streams_runtime.batch.stage import StoreBatch, TableRows
from streams_runtime.processors.aggregates.grouped_parts import ordinal_named, put_in_order
from streams_runtime.processors.aggregates.session_order import (
    Fragment,
    fragments_by_key,
    joined_steps,
    meeting,
    stored_sessions,
)
from streams_runtime.processors.aggregates.store_updates import Closed, Merged
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.merge_order import Mark, MergeStep, MergeSteps
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import session_key
from streams_runtime.state.window_store import SessionStore
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, closes_after


@dataclass(slots=True)
class _Session:
    """A session as it comes to be.

    `parts` are rows, of stored states and of the batch's, with what is done between them. They are the session's own.
    """

    start: int
    end: int
    parts: list[MergeStep]
    order: int = 0
    """Of the record with which it closed at once; 0: it closes later."""
    is_passed_on: bool = False

    def key(self, key: bytes) -> bytes:
        """Its key in the store."""
        return session_key(key, self.start, self.end)


@dataclass(slots=True)
class _Outcome:
    """Of all keys: what is to be written, which sessions are no more, and the stored values that parts refer to.

    `closed` are sessions as they closed, where they are to be passed on and have been joined by a record since.
    """

    written: list[tuple[int, bytes, _Session]] = field(default_factory=list)
    gone: list[tuple[int, bytes, int, int]] = field(default_factory=list)
    closed: list[tuple[int, bytes, _Session]] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)


def must_be_cut_anew(store_batch: StoreBatch, times: Mapping[int, int]) -> bool:
    """Whether a record may come too late by the stream time before the batch, which its fragments know nothing of."""
    assert store_batch.within is not None
    start, _, _, before = (store_batch.within[name].to_numpy() for name in FRAGMENT_COLUMNS)
    known = np.array([times[partition] for partition in store_batch.partitions.to_pylist()], np.int64)
    return bool(np.any((known > before) & (known - start > sure_age(_windows_of(store_batch)))))


def merged_sessions(state: AggregateState, store_batch: StoreBatch, stores: Mapping[int, AnyStore]) -> Merged:
    """Merge a batch's fragments into the stores' contents; writes nothing.

    Raises:
        StreamsException: a total left its range.
        FailedProcessingException: a count has too many values, or a class in Python failed.
        ProcessorStateException: a store can't be read.
    """
    outcome, windows = _Outcome(), _windows_of(store_batch)
    for (partition, key), fragments in fragments_by_key(store_batch).items():
        store = stores[partition]
        assert isinstance(store, SessionStore)
        _follow(windows, store, partition, key, fragments, outcome)
    stored = state.decode(outcome.stored)
    rows = pa.concat_tables([stored, state.of_batch(store_batch.columns)])
    made = [*outcome.written, *outcome.closed]
    parts = [_numbers(session.parts, len(outcome.stored)) for *_, session in made]
    owners = [(partition, key) for partition, key, _ in made]

    def named(number: int) -> str:
        return ordinal_named(store_batch, _row_of(store_batch, owners[number]))

    contents = put_in_order(state, rows, parts, state.join, named)
    as_closed, contents = contents.slice(len(outcome.written)), contents.slice(0, len(outcome.written))
    return Merged(
        _updates(outcome, state.encode(contents, named)),
        _rows(state, store_batch, outcome, contents),
        len(outcome.missed),
        outcome.missed,
        _closed(outcome, state.encode(as_closed)),
        {(partition, each.key(key)): each.order for partition, key, each in outcome.written if each.order},
    )


def _follow(
    windows: SessionWindows,
    store: SessionStore,
    partition: int,
    key: bytes,
    fragments: Sequence[Fragment],
    outcome: _Outcome,
) -> None:
    """One key's fragments, one after the other."""
    there, passed = [], closes_after(windows)
    for start, end, value in stored_sessions(windows, store, key, fragments):
        # Rows of stored states count downwards from -1.
        stored = _Session(start, end, [-1 - len(outcome.stored)], is_passed_on=end <= store.latest_timestamp - passed)
        there.append(stored)
        outcome.stored.append(value)
    known = {(each.start, each.end) for each in there}
    touched: list[_Session] = []
    for fragment in fragments:
        met = meeting(windows, there, fragment)
        if met.late:
            # It is one record, as it is not sure to be in time.
            outcome.missed.append((partition, fragment.order, [met.start]))
            continue
        closed = fragment.before - passed
        if windows.only_final:
            as_closed = [each for each in met.joined if each.end <= closed and not each.is_passed_on]
            outcome.closed += [(partition, key, replace(each, parts=list(each.parts))) for each in as_closed]
        parts = joined_steps([each.parts for each in met.joined], fragment.row)
        session = _Session(met.start, met.end, parts, fragment.order if met.end <= closed else 0)
        there = [each for each in there if each not in met.joined] + [session]
        touched = [each for each in touched if each not in met.joined] + [session]
    left = {(each.start, each.end) for each in there}
    outcome.gone += [(partition, key, start, end) for start, end in sorted(known - left)]
    outcome.written += [(partition, key, each) for each in sorted(touched, key=lambda each: each.end)]


def _numbers(parts: MergeSteps, stored: int) -> MergeSteps:
    """Where the parts are among all rows, of which the stored ones come first."""
    return [part if isinstance(part, Mark) else -1 - part if part < 0 else stored + part for part in parts]


def _row_of(store_batch: StoreBatch, owner: tuple[int, bytes]) -> int:
    """A row of the batch with this partition and key."""
    return list(zip(store_batch.partitions.to_pylist(), encoded(store_batch.keys), strict=True)).index(owner)


def _row_numbers(rows: Iterable[int]) -> pa.Array:
    return pa.array(list(rows), pa.int64())


def _updates(outcome: _Outcome, values: Sequence[bytes]) -> dict[int, Updates]:
    """What each partition's store will have: what is gone first, then what is written."""
    lines: defaultdict[int, list[tuple[bytes, bytes | None, int]]] = defaultdict(list)
    for partition, key, start, end in outcome.gone:
        lines[partition].append((session_key(key, start, end), None, end))
    for (partition, key, session), value in zip(outcome.written, values, strict=True):
        lines[partition].append((session.key(key), value, session.end))
    return {
        partition: Updates([key for key, *_ in each], [value for _, value, _ in each], [time for *_, time in each])
        for partition, each in lines.items()
    }


def _closed(outcome: _Outcome, values: Sequence[bytes]) -> dict[int, list[Closed]]:
    """The sessions that records joined after they had closed, as they closed."""
    found: defaultdict[int, list[Closed]] = defaultdict(list)
    for (partition, key, each), value in zip(outcome.closed, values, strict=True):
        found[partition].append((each.end, each.order, each.key(key), each.end, value))
    return found


def _rows(state: AggregateState, store_batch: StoreBatch, outcome: _Outcome, contents: pa.Table) -> TableRows:
    """The same for the steps behind the aggregate, with the keys as Spark gave them."""
    here = zip(store_batch.partitions.to_pylist(), encoded(store_batch.keys), strict=True)
    numbers = {window: row for row, window in enumerate(here)}
    lines = [(partition, key, start, end) for partition, key, start, end in outcome.gone]
    lines += [(partition, key, session.start, session.end) for partition, key, session in outcome.written]
    nothing = contents.slice(0, 0)
    deleted = pa.table([pa.nulls(len(outcome.gone), each.type) for each in nothing.schema], schema=nothing.schema)
    starts, ends = (pa.array([line[at] for line in lines], pa.int64()) for at in (2, 3))
    return TableRows(
        pa.array([line[0] for line in lines], pa.int32()),
        store_batch.keys.take(_row_numbers(numbers[line[:2]] for line in lines)),
        ends,
        state.finish(pa.concat_tables([deleted, contents])),
        starts,
        ends,
        pa.array([True] * len(outcome.gone) + [False] * len(outcome.written)),
    )


def _windows_of(store_batch: StoreBatch) -> SessionWindows:
    node = store_batch.node
    assert isinstance(node, AggregateNode)
    assert isinstance(node.windows, SessionWindows)
    return node.windows
