"""`suppress: untilWindowCloses`: of each window only its last contents, once stream time has closed it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from streams_runtime.batch.stage import TableRows
from streams_runtime.processors.aggregates.store_updates import Closed, Merged
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.serdes import Serde
from streams_runtime.state.store import Updates, unstamp
from streams_runtime.state.window_keys import LATEST, split_session_key, split_window_key
from streams_runtime.state.window_store import SegmentedStore
from streams_runtime.topology.nodes.window_kinds import SessionWindows, Windows, closes_after


def closed(
    state: AggregateState, windows: Windows, new: Merged, stores: Mapping[int, AnyStore], keys: Serde
) -> TableRows:
    """The windows that a batch has closed, as rows for the steps behind the aggregate; partition by partition, in the
    order in which they closed. A session that a record joined after it had closed is there twice, as it closed and as
    what came of it. `keys` is the keys' serde; nothing of `new` is in the stores yet.

    Raises ProcessorStateException: a store can't be read.
    """
    partitions: list[int] = []
    rows: list[Closed] = []
    for partition, updates in new.updates.items():
        store = stores[partition]
        assert isinstance(store, SegmentedStore)
        orders = {key: order for (at, key), order in new.orders.items() if at == partition}
        found = sorted([*_closed_of(windows, store, updates, orders), *new.closed.get(partition, ())])
        partitions += [partition] * len(found)
        rows += found
    split = [_split(windows, data) for _, _, data, *_ in rows]
    return TableRows(
        pa.array(partitions, pa.int32()),
        pa.chunked_array([pa.array([keys.decode(key) for key, *_ in split], new.rows.keys.type)]),
        pa.array([time for *_, time, _ in rows], pa.int64()),
        state.finish(state.decode([value for *_, value in rows])),
        pa.array([start for _, start, _ in split], pa.int64()),
        pa.array([end for *_, end in split], pa.int64()),
    )


def _closed_of(
    windows: Windows, store: SegmentedStore, updates: Updates, orders: Mapping[bytes, int]
) -> Collection[Closed]:
    """The windows of a partition that this batch's stream time has closed, and the one before had not."""
    passed = closes_after(windows)
    before = store.latest_timestamp
    first, last = before - passed + 1, max(before, *updates.timestamps) - passed
    found = {}
    for data, stored in _stored(windows, store, first, last) if first <= last else ():
        *_, end = _split(windows, data)
        if first <= end <= last:
            time, value = (end, stored) if isinstance(windows, SessionWindows) else unstamp(stored)
            found[data] = (end, 0, data, time, value)
    for data, new, time in zip(updates.keys, updates.values, updates.timestamps, strict=True):
        found.pop(data, None)
        *_, end = _split(windows, data)
        # In the moment in which they close sessions and sliding windows still take records: Kafka Streams passes them
        # on once more then.
        if new is not None and end <= last:
            found[data] = (end, orders.get(data, 0), data, time, new)
    return found.values()


def _stored(windows: Windows, store: SegmentedStore, first: int, last: int) -> Sequence[tuple[bytes, bytes]]:
    """Keys and stored values that may be among them, of windows that end between two times."""
    if isinstance(windows, SessionWindows):
        keys = [key for key, _ in store.fetch(None, None, max(first, 0), LATEST)]
    else:
        earliest, latest = windows.starts_of_ended(first, last)
        keys = [key for key, _ in store.fetch(None, None, max(earliest, 0), latest)]
    return [(key, value) for key, value in zip(keys, store.get_stored(keys), strict=True) if value is not None]


def _split(windows: Windows, data: bytes) -> tuple[bytes, int, int]:
    """Key, start and end."""
    if isinstance(windows, SessionWindows):
        return split_session_key(data)
    key, start, _ = split_window_key(data)
    return key, start, windows.end_of(start)
