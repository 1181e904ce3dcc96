"""State side of an aggregate by sessions: a batch's fragments join what the store has, and each other.

Fragments of a key are taken in their order, each as tasks.session_turns says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streams_runtime.pipeline.encode import encoded
from streams_runtime.pipeline.stage import Keyed, TableRows
from streams_runtime.pipeline.windows import FRAGMENT_COLUMNS, Missed, sure_age
from streams_runtime.state.aggregates import AggregateState
from streams_runtime.state.store import Updates
from streams_runtime.state.stores import AnyStore
from streams_runtime.state.turns import Mark, Turn, Turns
from streams_runtime.state.window_keys import session_key
from streams_runtime.state.windows import SessionStore
from streams_runtime.tasks.parts import place_named, put_in_turn
from streams_runtime.tasks.session_turns import Fragment, fragments_by_key, joined_turns, meeting, stored_sessions
from streams_runtime.tasks.updates import Merged
from streams_runtime.topology.nodes import AggregateNode
from streams_runtime.topology.windows import SessionWindows


@dataclass(slots=True)
class _Session:
    """A session as it comes to be.

    `parts` are rows, of stored states and of the batch's, with what is done between them. They are the session's own.
    """

    start: int
    end: int
    parts: list[Turn]


@dataclass(slots=True)
class _Outcome:
    """Of all keys: what is to be written, which sessions are no more, and the stored values that parts refer to."""

    written: list[tuple[int, bytes, _Session]] = field(default_factory=list)
    gone: list[tuple[int, bytes, int, int]] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)


def must_be_cut_anew(keyed: Keyed, times: Mapping[int, int]) -> bool:
    """Whether a record may come too late by the stream time before the batch, which its fragments know nothing of."""
    assert keyed.within is not None
    start, _, _, before = (keyed.within[name].to_numpy() for name in FRAGMENT_COLUMNS)
    known = np.array([times[partition] for partition in keyed.partitions.to_pylist()], np.int64)
    return bool(np.any((known > before) & (known - start > sure_age(_windows_of(keyed)))))


def merged_sessions(state: AggregateState, keyed: Keyed, stores: Mapping[int, AnyStore]) -> Merged:
    """Merge a batch's fragments into the stores' contents; writes nothing.

    Raises:
        StreamsException: a total left its range.
        UserCodeException: a class in Python failed.
        ProcessorStateException: a store can't be read.
    """
    outcome, windows = _Outcome(), _windows_of(keyed)
    for (partition, key), fragments in fragments_by_key(keyed).items():
        store = stores[partition]
        assert isinstance(store, SessionStore)
        _follow(windows, store, partition, key, fragments, outcome)
    stored = state.decode(outcome.stored)
    rows = pa.concat_tables([stored, state.of_batch(keyed.columns)])
    parts = [_numbers(session.parts, len(outcome.stored)) for *_, session in outcome.written]
    owners = [(partition, key) for partition, key, _ in outcome.written]
    contents = put_in_turn(
        state, rows, parts, state.join, lambda number: place_named(keyed, _row_of(keyed, owners[number]))
    )
    updates, changed = _updates(state, outcome, contents), _rows(state, keyed, outcome, contents)
    return Merged(updates, changed, len(outcome.missed), outcome.missed)


def _follow(
    windows: SessionWindows,
    store: SessionStore,
    partition: int,
    key: bytes,
    fragments: Sequence[Fragment],
    outcome: _Outcome,
) -> None:
    """One key's fragments, one after the other."""
    there = []
    for start, end, value in stored_sessions(windows, store, key, fragments):
        there.append(_Session(start, end, [-1 - len(outcome.stored)]))  # rows of stored states count downwards from -1
        outcome.stored.append(value)
    known = {(each.start, each.end) for each in there}
    touched: list[_Session] = []
    for fragment in fragments:
        met = meeting(windows, there, fragment)
        if met.late:
            # It is one record, as it is not sure to be in time.
            outcome.missed.append((partition, fragment.turn, [met.start]))
            continue
        session = _Session(met.start, met.end, joined_turns([each.parts for each in met.joined], fragment.row))
        there = [each for each in there if each not in met.joined] + [session]
        touched = [each for each in touched if each not in met.joined] + [session]
    left = {(each.start, each.end) for each in there}
    outcome.gone += [(partition, key, start, end) for start, end in sorted(known - left)]
    outcome.written += [(partition, key, each) for each in sorted(touched, key=lambda each: each.end)]


def _numbers(parts: Turns, stored: int) -> Turns:
    """Where the parts are among all rows, of which the stored ones come first."""
    return [part if isinstance(part, Mark) else -1 - part if part < 0 else stored + part for part in parts]


def _row_of(keyed: Keyed, owner: tuple[int, bytes]) -> int:
    """A row of the batch with this partition and key."""
    return list(zip(keyed.partitions.to_pylist(), encoded(keyed.keys), strict=True)).index(owner)


def _places(rows: Iterable[int]) -> pa.Array:
    return pa.array(list(rows), pa.int64())


def _updates(state: AggregateState, outcome: _Outcome, contents: pa.Table) -> dict[int, Updates]:
    """What each partition's store will have: what is gone first, then what is written."""
    lines: defaultdict[int, list[tuple[bytes, bytes | None, int]]] = defaultdict(list)
    for partition, key, start, end in outcome.gone:
        lines[partition].append((session_key(key, start, end), None, end))
    for (partition, key, session), value in zip(outcome.written, state.encode(contents), strict=True):
        lines[partition].append((session_key(key, session.start, session.end), value, session.end))
    return {
        partition: Updates([key for key, *_ in each], [value for _, value, _ in each], [time for *_, time in each])
        for partition, each in lines.items()
    }


def _rows(state: AggregateState, keyed: Keyed, outcome: _Outcome, contents: pa.Table) -> TableRows:
    """The same for the steps behind the aggregate, with the keys as Spark gave them."""
    here = zip(keyed.partitions.to_pylist(), encoded(keyed.keys), strict=True)
    places = {place: row for row, place in enumerate(here)}
    lines = [(partition, key, start, end) for partition, key, start, end in outcome.gone]
    lines += [(partition, key, session.start, session.end) for partition, key, session in outcome.written]
    nothing = contents.slice(0, 0)
    deleted = pa.table([pa.nulls(len(outcome.gone), each.type) for each in nothing.schema], schema=nothing.schema)
    starts, ends = (pa.array([line[at] for line in lines], pa.int64()) for at in (2, 3))
    return TableRows(
        pa.array([line[0] for line in lines], pa.int32()),
        keyed.keys.take(_places(places[line[:2]] for line in lines)),
        ends,
        state.finish(pa.concat_tables([deleted, contents])),
        starts,
        ends,
        pa.array([True] * len(outcome.gone) + [False] * len(outcome.written)),
    )


def _windows_of(keyed: Keyed) -> SessionWindows:
    node = keyed.node
    assert isinstance(node, AggregateNode)
    assert isinstance(node.windows, SessionWindows)
    return node.windows
