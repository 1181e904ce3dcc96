"""State side of a batch, in whole columns: a batch's rows and what the stores have become what they will have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.pipeline.encode import encoded
from streams_runtime.pipeline.nodes import OUT_VALUE
from streams_runtime.pipeline.runner import Keyed
from streams_runtime.state.aggregates import AggregateState
from streams_runtime.state.store import KeyValueStore, Updates

_NO_TIME = (-1).to_bytes(8, "big", signed=True)


@dataclass(frozen=True, slots=True)
class Merged:
    """An aggregate's new contents: by partition for the stores, and as rows for the steps behind it."""

    updates: Mapping[int, Updates]
    rows: Keyed
    finished: pa.Table


def merged(state: AggregateState, keyed: Keyed, stores: Mapping[int, KeyValueStore]) -> Merged:
    """Merge a batch's partial aggregates into the stores' contents; writes nothing.

    Raises:
        StreamsException: a total left its range.
        ProcessorStateException: a store can't be read.
    """
    keys = pa.chunked_array([pa.array(encoded(keyed.keys), pa.binary())])
    order = pc.sort_indices(
        pa.table({"partition": keyed.partitions, "key": keys}),
        sort_keys=[("partition", "ascending"), ("key", "ascending")],
    )
    partitions = keyed.partitions.take(order).to_numpy()
    key_bytes: list[bytes] = keys.take(order).to_pylist()
    slices = _slices(partitions)
    stored: list[bytes | None] = []
    for partition, part in slices.items():
        stored += stores[partition].get_stored(key_bytes[part])
    old_times = np.frombuffer(b"".join(_NO_TIME if each is None else each[:8] for each in stored), ">i8")
    times = np.maximum(old_times.astype(np.int64), keyed.timestamps.take(order).to_numpy())
    old = state.decode([None if each is None else each[8:] for each in stored])
    new = state.merge(old, keyed.columns.take(order))
    values = state.encode(new)
    time_list: list[int] = times.tolist()
    updates = {p: Updates(key_bytes[part], values[part], time_list[part]) for p, part in slices.items()}
    rows = Keyed(keyed.node, pa.array(partitions), keyed.keys.take(order), pa.array(times), new)
    return Merged(updates, rows, state.finish(new))


def table_updates(keyed: Keyed) -> dict[int, Updates]:
    """A table source's rows by partition, the last one of each key."""
    partitions: Sequence[int] = keyed.partitions.to_pylist()
    latest: dict[int, dict[bytes, tuple[bytes | None, int]]] = {}
    rows = zip(
        partitions,
        encoded(keyed.keys),
        keyed.columns[OUT_VALUE].to_pylist(),
        keyed.timestamps.to_pylist(),
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
    ends = [*starts[1:].tolist(), len(partitions)]
    return {int(p): slice(start, end) for p, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True)}
