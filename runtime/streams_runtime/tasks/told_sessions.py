"""State side of an aggregate by sessions of which every change counts: record by record, as they are passed on.

A record deletes the sessions that it joins, in their order, and then makes the one that comes of them, as
KStreamSessionWindowAggregate does it. One at the time of a session of that one moment only changes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from streams_runtime.pipeline.runner import Keyed
from streams_runtime.pipeline.windows import Missed
from streams_runtime.state.aggregates import AggregateState
from streams_runtime.state.shown import seen
from streams_runtime.state.store import Updates
from streams_runtime.state.stores import AnyStore
from streams_runtime.state.window_keys import session_key
from streams_runtime.state.windows import SessionStore
from streams_runtime.tasks.chains import BEGIN, Chains
from streams_runtime.tasks.session_turns import Fragment, fragments_by_key, meeting, stored_sessions
from streams_runtime.tasks.told import Told, changes_at
from streams_runtime.topology.windows import SessionWindows

_GONE = -1


@dataclass(frozen=True, slots=True)
class _Session:
    """A session as a record has left it: `link` is the state that it has (tasks.chains). Times in ms."""

    start: int
    end: int
    link: int


@dataclass(frozen=True, slots=True)
class _Change:
    """What a record does to a session: `row` is its number in the batch, `link` the session's new state, or _GONE."""

    partition: int
    turn: int
    row: int
    key: bytes
    end: int
    link: int


@dataclass(slots=True)
class _Told:
    """Of all keys: the states, the changes, what each store will have, and the records that came too late.

    `stored` are the values that the stores had: rows of links that are counted from -1 downwards. `left` are key in the
    store, end and link of a session, or _GONE.
    """

    chains: Chains = field(default_factory=Chains)
    changes: list[_Change] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)
    left: defaultdict[int, list[tuple[bytes, int, int]]] = field(default_factory=lambda: defaultdict(list))
    missed: list[Missed] = field(default_factory=list)


def told_sessions(state: AggregateState, windows: SessionWindows, keyed: Keyed, stores: Mapping[int, AnyStore]) -> Told:
    """What each record of a batch makes of its key's sessions; writes nothing.

    Raises as told_windows.told_one_by_one does.
    """
    assert not state.in_turn  # such aggregates are refused: a chain does not say where sessions were merged
    told = _Told()
    for (partition, key), fragments in fragments_by_key(keyed).items():
        store = stores[partition]
        assert isinstance(store, SessionStore)
        _follow(windows, store, partition, key, fragments, told)
    rows = pa.concat_tables([state.of_batch(keyed.columns), state.decode(told.stored[::-1])])
    contents = told.chains.states(rows, state.join)
    values, shown = state.encode(contents), seen(state, contents, [True] * len(contents))
    told.changes.sort(key=lambda each: (each.partition, each.turn))
    changes = changes_at(
        keyed,
        pa.array([each.row for each in told.changes], pa.int64()),
        pa.array([each.key for each in told.changes], pa.binary()),
        pa.array([each.end for each in told.changes], pa.int64()),
        pa.array([None if each.link == _GONE else shown[each.link] for each in told.changes], pa.binary()),
    )
    updates = {
        partition: Updates(
            [key for key, *_ in left],
            [None if link == _GONE else values[link] for *_, link in left],
            [end for _, end, _ in left],
        )
        for partition, left in told.left.items()
        if left
    }
    return Told(changes, updates, len(told.missed), told.missed)


def _follow(
    windows: SessionWindows,
    store: SessionStore,
    partition: int,
    key: bytes,
    fragments: Sequence[Fragment],
    told: _Told,
) -> None:
    """One key's records, one after the other."""
    there, links = [], told.chains
    for start, end, value in stored_sessions(windows, store, key, fragments):
        told.stored.append(value)
        there.append(_Session(start, end, links.add(BEGIN, -len(told.stored))))
    known = list(there)
    for each in fragments:
        # The batch alone does not know how far stream time had come before it.
        record = replace(each, before=max(each.before, store.latest_timestamp))
        met = meeting(windows, there, record)
        if met.late:
            told.missed.append((partition, record.turn, [met.start]))
            continue
        session = _Session(met.start, met.end, _joined(links, met.joined, record.row))
        there = [each for each in there if each not in met.joined] + [session]
        # The session of the record's own moment alone stays where it is.
        gone = met.joined if (met.start, met.end) != (record.start, record.end) else ()
        for changed, link in [*((each, _GONE) for each in gone), (session, session.link)]:
            data = session_key(key, changed.start, changed.end)
            told.changes.append(_Change(partition, record.turn, record.row, data, changed.end, link))
    left = {(each.start, each.end) for each in there}
    old = sorted((each.start, each.end) for each in known if (each.start, each.end) not in left)
    told.left[partition] += [(session_key(key, start, end), end, _GONE) for start, end in old]
    new = sorted((each for each in there if each not in known), key=lambda each: each.end)
    told.left[partition] += [(session_key(key, each.start, each.end), each.end, each.link) for each in new]


def _joined(links: Chains, sessions: Sequence[_Session], row: int) -> int:
    """The state of sessions that become one by a record."""
    link = sessions[0].link if sessions else BEGIN
    for each in sessions[1:]:
        for other in links.rows_of(each.link):
            link = links.add(link, other)
    return links.add(link, row)
