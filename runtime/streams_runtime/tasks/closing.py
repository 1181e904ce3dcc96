"""`suppress: untilWindowCloses`: of each window only its last contents, once stream time has closed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from streams_runtime.pipeline.runner import Keyed
from streams_runtime.state.aggregates import AggregateState
from streams_runtime.state.serdes import Serde
from streams_runtime.state.store import Updates, unstamp
from streams_runtime.state.stores import AnyStore
from streams_runtime.state.window_keys import split_window_key
from streams_runtime.state.windows import WindowStore
from streams_runtime.tasks.updates import Merged
from streams_runtime.topology.plan import AggregateNode, TimeWindows

Last = tuple[int, bytes, int, bytes]
"""Start, key, latest time and state of a window that has closed."""


def closed(state: AggregateState, new: Merged, stores: Mapping[int, AnyStore], keys: Serde) -> tuple[Keyed, pa.Table]:
    """The windows that a batch has closed, as rows for the steps behind the aggregate; partition by partition, in the
    order of their ends and keys. `keys` is the keys' serde; nothing of `new` is in the stores yet.

    Raises ProcessorStateException: a store can't be read.
    """
    node = new.rows.node
    assert isinstance(node, AggregateNode)
    assert node.windows is not None
    partitions: list[int] = []
    rows: list[Last] = []
    for partition, updates in new.updates.items():
        store = stores[partition]
        assert isinstance(store, WindowStore)
        found = sorted(_last(node.windows, store, updates))
        partitions += [partition] * len(found)
        rows += found
    contents = state.decode([value for *_, value in rows])
    shown = Keyed(
        node,
        pa.chunked_array([pa.array(partitions, pa.int32())]),
        pa.chunked_array([_keys([key for _, key, *_ in rows], keys, new.rows.keys.type)]),
        pa.chunked_array([pa.array([time for *_, time, _ in rows], pa.int64())]),
        contents,
        pa.chunked_array([pa.array([start for start, *_ in rows], pa.int64())]),
    )
    return shown, state.finish(contents)


def _last(windows: TimeWindows, store: WindowStore, updates: Updates) -> Iterator[Last]:
    """The windows whose end and grace the batch's stream time has reached, which it had not before."""
    lasts = windows.size + windows.grace
    first = max(store.latest_timestamp - lasts + 1, 0)
    last = max(updates.timestamps) - lasts
    if last < first:
        return
    times_and_values = {key: unstamp(stored) for key, stored in _stored(store, first, last)}
    for key, value, time in zip(updates.keys, updates.values, updates.timestamps, strict=True):
        assert value is not None  # an aggregate deletes no window
        times_and_values[key] = (time, value)
    for key, (time, value) in times_and_values.items():
        name, start, _ = split_window_key(key)
        if first <= start <= last:
            yield start, name, time, value


def _stored(store: WindowStore, first: int, last: int) -> Iterator[tuple[bytes, bytes]]:
    keys = [key for key, _ in store.fetch(None, None, first, last)]
    return ((key, stored) for key, stored in zip(keys, store.get_stored(keys), strict=True) if stored is not None)


def _keys(data: Sequence[bytes], keys: Serde, kind: pa.DataType) -> pa.Array:
    values: list[Any] = [keys.decode(each) for each in data]
    return pa.array(values, kind)
