"""State side of a batch, in whole columns: a batch's rows and what the stores have become what they will have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import OUT_RECORDS, OUT_VALUE, OUT_WINDOW
from streams_runtime.batch.encode import encoded
from streams_runtime.batch.late_records import Missed
from streams_runtime.batch.stage import StoreBatch, TableRows
from streams_runtime.batch.window_bounds import arrow_ends
from streams_runtime.processors.aggregates.grouped_parts import ordinal_named
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import window_key
from streams_runtime.state.window_store import SessionStore, WindowStore
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.window_kinds import TimeWindows
from streams_runtime.topology.table_parts import TableRoot

_NO_TIME = (-1).to_bytes(8, "big", signed=True)


Closed = tuple[int, int, bytes, int, bytes]
"""A window that has closed: end, order, key in the store, latest time and state. They are passed on in this order.

The order is 0, or the number of the record (batch.columns.ORDER) that changed it in the very moment in which it closed.
"""


@dataclass(frozen=True, slots=True)
class Merged:
    """An aggregate's new contents: by partition for the stores, and as rows for the steps behind it.

    `late`: how often a record came too late for a window: of time windows for one that was closed before the batch, of
    others for any. Those of the others are `missed`. By partition the sessions that had `closed` when a record of the
    batch joined them. `orders`: those of new contents (by partition and key) that closed with the record itself.
    """

    updates: Mapping[int, Updates]
    rows: TableRows
    late: int = 0
    missed: Sequence[Missed] = ()
    closed: Mapping[int, Sequence[Closed]] = field(default_factory=dict)
    orders: Mapping[tuple[int, bytes], int] = field(default_factory=dict)


def stream_times(stores: Mapping[int, AnyStore]) -> dict[int, int]:
    """How far the stream time (ms) of each partition with windows has come; -1 where no record was there yet."""
    windowed = WindowStore | SessionStore
    return {number: store.latest_timestamp for number, store in stores.items() if isinstance(store, windowed)}


def merged(state: AggregateState, store_batch: StoreBatch, stores: Mapping[int, AnyStore]) -> Merged:
    """Merge a batch's partial aggregates into the stores' contents; writes nothing.

    Of windows those are left out that were closed before the batch: their records came too late.

    Raises:
        StreamsException: a total left its range.
        FailedProcessingException: a count has too many values, or a class in Python failed.
        ProcessorStateException: a store can't be read.
    """
    store_batch, late = without_closed(store_batch, stream_times(stores))
    starts = None if store_batch.within is None else store_batch.within[OUT_WINDOW]
    keys = store_keys(store_batch)
    order = pc.sort_indices(
        pa.table({"partition": store_batch.partitions, "key": keys}),
        sort_keys=[("partition", "ascending"), ("key", "ascending")],
    )
    partitions = store_batch.partitions.take(order).to_numpy()
    key_bytes: list[bytes] = keys.take(order).to_pylist()
    slices = _slices(partitions)
    stored: list[bytes | None] = []
    for partition, part in slices.items():
        stored += stores[partition].get_stored(key_bytes[part])
    old_times = np.frombuffer(b"".join(_NO_TIME if each is None else each[:8] for each in stored), ">i8")
    times = np.maximum(old_times.astype(np.int64), store_batch.timestamps.take(order).to_numpy())
    old = state.decode([None if each is None else each[8:] for each in stored])
    batch = state.of_batch(store_batch.columns).take(order)
    new = state.merge(old, batch)

    def named(row: int) -> str:
        return ordinal_named(store_batch, order[row].as_py())

    if not state.merges_in_columns:
        merge_steps = [(row, len(old) + row) for row in range(len(old))]
        new = state.played(pa.concat_tables([old, batch]), merge_steps, new, named)
    values = state.encode(new, named)
    time_list: list[int] = times.tolist()
    updates = {p: Updates(key_bytes[part], values[part], time_list[part]) for p, part in slices.items()}
    starts = None if starts is None else starts.take(order)
    ends = None if starts is None else arrow_ends(windows_of(store_batch.node), starts)
    rows = TableRows(
        pa.array(partitions),
        store_batch.keys.take(order),
        pa.array(times),
        state.finish(new),
        starts,
        ends,
        json=list(values) if state.stored_as_seen else None,
    )
    return Merged(updates, rows, late)


def store_keys(store_batch: StoreBatch) -> pa.ChunkedArray:
    """The keys that the store has for the rows: with the start of the window, where time windows divide them."""
    keys = encoded(store_batch.keys)
    if store_batch.within is not None and OUT_WINDOW in store_batch.within.column_names:
        # Every key is there: records without one do not get so far.
        starts = store_batch.within[OUT_WINDOW].to_pylist()
        keys = [window_key(key or b"", start) for key, start in zip(keys, starts, strict=True)]
    return pa.chunked_array([pa.array(keys, pa.binary())])


def windows_of(node: TableRoot) -> TimeWindows:
    """The time windows of a node that is known to have them."""
    assert isinstance(node, AggregateNode)
    assert isinstance(node.windows, TimeWindows)
    return node.windows


def without_closed(store_batch: StoreBatch, times: Mapping[int, int]) -> tuple[StoreBatch, int]:
    """The rows whose windows were open when the batch began, and how many records the others stand for.

    The batch's own records were judged by those before them in the batch (pipeline.windowing.window_frames); stream
    time before the batch is the same for all of them, so that it keeps a window's rows or leaves them all out. Windows
    that would begin before 1970, where their offset is not reached yet, are never open.
    """
    if store_batch.within is None:
        return store_batch, 0
    windows = windows_of(store_batch.node)
    before = pa.array([times[partition] for partition in store_batch.partitions.to_pylist()], pa.int64())
    starts = store_batch.within[OUT_WINDOW]
    is_open = pc.greater(pc.add(arrow_ends(windows, starts), windows.grace), before)
    if windows.may_begin_before_1970:
        is_open = pc.and_(is_open, pc.greater_equal(starts, 0))
    late = pc.sum(store_batch.within[OUT_RECORDS].filter(pc.invert(is_open))).as_py() or 0
    return store_batch.filter(is_open), late


def table_updates(store_batch: StoreBatch) -> dict[int, Updates]:
    """The rows of a table source, a toTable or a join by a foreign key by partition, the last one of each key."""
    partitions: Sequence[int] = store_batch.partitions.to_pylist()
    latest: dict[int, dict[bytes, tuple[bytes | None, int]]] = {}
    rows = zip(
        partitions,
        encoded(store_batch.keys),
        store_batch.columns[OUT_VALUE].to_pylist(),
        store_batch.timestamps.to_pylist(),
        strict=True,
    )
    for partition, key, value, time in rows:
        if key is not None:
            latest.setdefault(partition, {})[key] = (value, time)
    return {
        partition: Updates(list(found), [value for value, _ in found.values()], [time for _, time in found.values()])
        for partition, found in latest.items()
    }


def _slices(partitions: np.ndarray[tuple[int], np.dtype[np.int32]]) -> dict[int, slice]:
    """Where each partition's rows are, in rows sorted by partition."""
    found, starts = np.unique(partitions, return_index=True)
    ends = [*starts[1:].tolist(), len(partitions)][: len(found)]
    return {int(p): slice(start, end) for p, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True)}
