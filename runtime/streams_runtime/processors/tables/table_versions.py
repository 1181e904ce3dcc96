"""What a batch puts into a table with a history: every row with its time, but those that come too late for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streams_runtime.batch.columns import OUT_VALUE
from streams_runtime.batch.encode import encoded
from streams_runtime.batch.record_order import Vector
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.state.database.segments import NO_TIME
from streams_runtime.state.store import Updates
from streams_runtime.state.versioned_store import VersionedStore


@dataclass(frozen=True, slots=True)
class Versions:
    """The rows that a table takes, in order, the same for its stores by partition, and how many it does not take."""

    changes: StoreBatch
    updates: Mapping[int, Updates]
    expired: int


def versions_of(rows: StoreBatch, stores: Mapping[int, VersionedStore]) -> Versions:
    """The rows of a batch, in order, that the history still reaches back to when their turn comes.

    A row without a key is no version, and lets no time come; it stays among the changes for its place.
    """
    has_key = rows.keys.is_valid().to_numpy()
    partitions = rows.partitions.to_numpy().astype(np.int64)
    times = rows.timestamps.to_numpy().astype(np.int64)
    reached = stream_times_of(partitions, np.where(has_key, times, NO_TIME), stores)
    taken = times >= reached - np.array([stores[each].retention for each in partitions.tolist()], np.int64)
    changes = rows.filter(pa.chunked_array([pa.array(taken | ~has_key)]))
    keys, values, when = encoded(rows.keys), rows.columns[OUT_VALUE].to_pylist(), times.tolist()
    updates: dict[int, Updates] = {}
    for partition in np.unique(partitions).tolist():
        own = np.flatnonzero(taken & has_key & (partitions == partition)).tolist()
        updates[partition] = Updates(
            [keys[row] or b"" for row in own], [values[row] for row in own], [when[row] for row in own]
        )
    return Versions(changes, updates, int(np.count_nonzero(has_key & ~taken)))


def stream_times_of(partitions: Vector, times: Vector, stores: Mapping[int, VersionedStore]) -> Vector:
    """The time that the store of each row's partition has come to before the row, with those before it (ms)."""
    found = np.empty(len(times), np.int64)
    for partition in np.unique(partitions).tolist():
        rows = np.flatnonzero(partitions == partition)
        own = np.concatenate([[stores[partition].stream_time], times[rows]])
        found[rows] = np.maximum.accumulate(own)[:-1]
    return found
