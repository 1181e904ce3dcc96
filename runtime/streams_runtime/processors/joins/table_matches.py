"""What both joins of a stream with a table do in whole columns: each key that is asked once, and values by number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streams_runtime.batch.record_order import Vector
from streams_runtime.batch.vectors import integers

_PIECE = 65_536  # rows whose matches are copied at once: what they hold has to fit into one of Arrow's arrays


def asked_once(partitions: Vector, keys: pa.LargeBinaryArray) -> tuple[pa.Table, Vector]:
    """Each partition and key once, without null keys, and which of these each row has; any number where it has none."""
    encoded = keys.dictionary_encode()
    size = len(encoded.dictionary) + 1
    codes = encoded.indices.fill_null(size - 1).to_numpy().astype(np.int64)
    pairs, whose = np.unique(partitions * size + codes, return_inverse=True)
    named = pa.table(
        {
            "partition": integers(pairs // size),
            "key": encoded.dictionary.take(integers(pairs % size, pairs % size < size - 1)),
        }
    )
    return named, whose.astype(np.int64)


def values_taken(values: list[pa.BinaryArray], numbers: pa.Int64Array) -> pa.ChunkedArray:
    """The values at these places of all, one behind the other."""
    all_ = pa.concat_arrays([each.cast(pa.large_binary()) for each in values])
    pieces = (numbers.slice(start, _PIECE) for start in range(0, len(numbers), _PIECE))
    return pa.chunked_array([all_.take(each).cast(pa.binary()) for each in pieces], pa.binary())
