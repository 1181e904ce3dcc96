"""Changes of windows: each is a table's row of its own, whose key has the window in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streams_runtime.batch.columns import WINDOW_END, WINDOW_START
from streams_runtime.batch.encode import Bytes, windowed_keys
from streams_runtime.batch.record_order import Ordinal
from streams_runtime.batch.rows import moments
from streams_runtime.batch.window_bounds import ends_of
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.store import unstamp
from streams_runtime.state.window_keys import split_session_key, split_window_key
from streams_runtime.state.window_store import SessionStore
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows
from streams_runtime.topology.table_parts import TablePart

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Key, start and end (ms) of windows, from the keys that a store has for them."""

    keys: Sequence[bytes]
    starts: Numbers
    ends: Numbers
    sessions: bool

    def columns(self, which: Numbers | None = None) -> dict[str, pa.Array]:
        """Start and end as expressions see them; of some rows only."""
        bounds = {WINDOW_START: self.starts, WINDOW_END: self.ends}
        return {name: moments(pa.array(times if which is None else times[which])) for name, times in bounds.items()}

    def beside(self, rows: pa.Table, key: str) -> pa.Table:
        """Rows that have a store's keys in the column `key`, with the records' keys there and the bounds beside."""
        rows = rows.set_column(rows.column_names.index(key), key, pa.array(self.keys, pa.binary()))
        for name, column in self.columns().items():
            rows = rows.append_column(name, column)
        return rows

    def windowed(self, keys: Bytes, which: Sequence[int]) -> Bytes:
        """Records' keys as they go to a topic, of the windows of these numbers."""
        ends = pa.array(self.ends[which]) if self.sessions else None
        return windowed_keys(keys, pa.array(self.starts[which]), ends)


def bounds_of(part: TablePart, keys: Sequence[bytes]) -> Bounds | None:
    """The windows of a part's rows by their keys in a store; None: the rows are none. All sources have the same."""
    source = part.sources[0]
    if not isinstance(source, AggregateNode) or source.windows is None:
        return None
    split_key = split_session_key if isinstance(source.windows, SessionWindows) else split_window_key
    split = [split_key(key) for key in keys]
    starts = np.array([start for _, start, _ in split], np.int64)
    if isinstance(source.windows, SessionWindows):
        return Bounds([key for key, *_ in split], starts, np.array([end for *_, end in split], np.int64), sessions=True)
    return Bounds([key for key, *_ in split], starts, ends_of(source.windows, starts), sessions=False)


def numbers_within(ordinals: Sequence[Ordinal], paths: Sequence[Sequence[int]]) -> list[int]:
    """Of each change, which of those of its record's row it is: one record may change several windows, in an order."""
    counts: Counter[tuple[Ordinal, tuple[int, ...]]] = Counter()
    found = []
    for ordinal, path in zip(ordinals, paths, strict=True):
        row = (ordinal, tuple(path))
        found.append(counts[row])
        counts[row] += 1
    return found


def held_in(store: AnyStore, keys: Sequence[bytes]) -> list[tuple[int, bytes] | None]:
    """Time and value that a store has for each key; None where it has none. A session's time is its end.

    Raises ProcessorStateException: the store can't be read.
    """
    stored = store.get_stored(keys)
    if isinstance(store, SessionStore):
        pairs = zip(keys, stored, strict=True)
        return [None if value is None else (split_session_key(key)[2], value) for key, value in pairs]
    return [None if each is None else unstamp(each) for each in stored]
