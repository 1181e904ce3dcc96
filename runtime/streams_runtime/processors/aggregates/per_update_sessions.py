"""State side of an aggregate by sessions of which every change counts: record by record, as they are passed on.

A record deletes the sessions that it joins, in their order, and then makes the one that comes of them, as
KStreamSessionWindowAggregate does it. One at the time of a session of that one moment only changes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streams_runtime.batch.late_records import Missed
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.grouped_parts import ordinal_named
from streams_runtime.processors.aggregates.per_update import PerUpdate, changes_at
from streams_runtime.processors.aggregates.session_order import (
    Fragment,
    Meeting,
    fragments_by_key,
    joined_steps,
    meeting,
    stored_sessions,
)
from streams_runtime.processors.prefix_fold import BEGIN, PrefixFold, replaced
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.merge_order import MergeStep
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.shown_values import seen
from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import session_key
from streams_runtime.state.window_store import SessionStore
from streams_runtime.topology.nodes.window_kinds import SessionWindows

_GONE = -1


@dataclass(frozen=True, slots=True)
class _Session:
    """A session as a record has left it: `link` is the state that it has (processors.prefix_fold). Times in ms.

    `merge_steps` are the rows and what is done between them, of its own and of those that it has joined
    (state.aggregates.merge_order); those that it has of what it begins as are taken over.
    """

    start: int
    end: int
    link: int
    merge_steps: list[MergeStep] = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Change:
    """What a record does to a session: `row` is its number in the batch, `link` the session's new state, or _GONE."""

    partition: int
    order: int
    row: int
    key: bytes
    end: int
    link: int


@dataclass(slots=True)
class _PerUpdate:
    """Of all keys: the states, the changes, what each store will have, and the records that came too late.

    `stored` are the values that the stores had: rows of links that are counted from -1 downwards. `left` are key in the
    store, end and link of a session, or _GONE.
    """

    folds: PrefixFold = field(default_factory=PrefixFold)
    changes: list[_Change] = field(default_factory=list)
    played: list[list[MergeStep]] = field(default_factory=list)
    """The merge steps of each session that is there at the end, and has records."""
    stored: list[bytes] = field(default_factory=list)
    left: defaultdict[int, list[tuple[bytes, int, int]]] = field(default_factory=lambda: defaultdict(list))
    missed: list[Missed] = field(default_factory=list)
    key_ends: list[tuple[int, int]] = field(default_factory=list)
    """Of each key the link behind its last one, and a row of it."""

    def record_near(self, link: int) -> int:
        """A row of the key that a link is of."""
        return next(row for end, row in self.key_ends if link < end)


def per_update_sessions(
    state: AggregateState, windows: SessionWindows, store_batch: StoreBatch, stores: Mapping[int, AnyStore]
) -> PerUpdate:
    """What each record of a batch makes of its key's sessions; writes nothing.

    Raises as per_update.merged_one_by_one does.
    """
    updates_made = _PerUpdate()
    for (partition, key), fragments in fragments_by_key(store_batch).items():
        store = stores[partition]
        assert isinstance(store, SessionStore)
        _follow(windows, store, partition, key, fragments, updates_made)
    rows = pa.concat_tables([state.of_batch(store_batch.columns), state.decode(updates_made.stored[::-1])])
    contents = updates_made.folds.states(state.without_sets(rows), state.join)
    if state.record_by_record:
        contents = _one_by_one(state, store_batch, updates_made, rows, contents)
    kept = [link for left in updates_made.left.values() for *_, link in left if link != _GONE]
    near = updates_made.record_near
    encoded = state.encode(
        contents.take(pa.array(kept, pa.int64())), lambda each: ordinal_named(store_batch, near(kept[each]))
    )
    values = dict(zip(kept, encoded, strict=True))
    shown = seen(state, contents, [True] * len(contents))
    updates_made.changes.sort(key=lambda each: (each.partition, each.order))
    changes = changes_at(
        store_batch,
        pa.array([each.row for each in updates_made.changes], pa.int64()),
        pa.array([each.key for each in updates_made.changes], pa.binary()),
        pa.array([each.end for each in updates_made.changes], pa.int64()),
        pa.array([None if each.link == _GONE else shown[each.link] for each in updates_made.changes], pa.binary()),
    )
    updates = {
        partition: Updates(
            [key for key, *_ in left],
            [None if link == _GONE else values[link] for *_, link in left],
            [end for _, end, _ in left],
        )
        for partition, left in updates_made.left.items()
        if left
    }
    return PerUpdate(changes, updates, len(updates_made.missed), updates_made.missed)


def _follow(
    windows: SessionWindows,
    store: SessionStore,
    partition: int,
    key: bytes,
    fragments: Sequence[Fragment],
    updates_made: _PerUpdate,
) -> None:
    """One key's records, one after the other."""
    there, links = [], updates_made.folds
    for start, end, value in stored_sessions(windows, store, key, fragments):
        updates_made.stored.append(value)
        number = -len(updates_made.stored)
        there.append(_Session(start, end, links.add(BEGIN, number), [number]))
    known = list(there)
    for each in fragments:
        # The batch alone does not know how far stream time had come before it.
        record = replace(each, before=max(each.before, store.latest_timestamp))
        met = meeting(windows, there, record)
        if met.late:
            updates_made.missed.append((partition, record.order, [met.start]))
            continue
        session = _joined(links, met, record.row)
        there = [each for each in there if each not in met.joined] + [session]
        # The session of the record's own moment alone stays where it is.
        gone = met.joined if (met.start, met.end) != (record.start, record.end) else ()
        for changed, link in [*((each, _GONE) for each in gone), (session, session.link)]:
            data = session_key(key, changed.start, changed.end)
            updates_made.changes.append(_Change(partition, record.order, record.row, data, changed.end, link))
    updates_made.key_ends.append((len(links.rows), fragments[0].row))
    left = {(each.start, each.end) for each in there}
    old = sorted((each.start, each.end) for each in known if (each.start, each.end) not in left)
    updates_made.left[partition] += [(session_key(key, start, end), end, _GONE) for start, end in old]
    new = sorted((each for each in there if each not in known), key=lambda each: each.end)
    updates_made.left[partition] += [(session_key(key, each.start, each.end), each.end, each.link) for each in new]
    updates_made.played += [each.merge_steps for each in new]


def _joined(links: PrefixFold, met: Meeting[_Session], row: int) -> _Session:
    """The session that others become by the record of a row."""
    link = met.joined[0].link if met.joined else BEGIN
    for each in met.joined[1:]:
        for other in links.rows_of(each.link):
            link = links.add(link, other)
    merge_steps = joined_steps([each.merge_steps for each in met.joined], row)
    return _Session(met.start, met.end, links.add(link, row), merge_steps)


def _one_by_one(
    state: AggregateState, store_batch: StoreBatch, updates_made: _PerUpdate, rows: pa.Table, contents: pa.Table
) -> pa.Table:
    """The states of the links, of aggregates that take records in turn as well: each record has made one."""
    records = [[step for step in steps if isinstance(step, int) and step >= 0] for steps in updates_made.played]
    link_of = {change.row: change.link for change in updates_made.changes if change.link != _GONE}
    links = np.array([link_of[row] for each in records for row in each], np.int64)
    merge_steps = [
        [len(rows) + order if isinstance(order, int) and order < 0 else order for order in session]
        for session in updates_made.played
    ]
    others = contents.take(pa.array(links))
    made = state.per_update(rows, merge_steps, others, lambda number: ordinal_named(store_batch, records[number][0]))
    return replaced(contents, links, made)
