"""Columns that left Spark, as the bytes that Kafka and the stores hold: keys and primitive values, in whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa

from streams_runtime.batch.json_columns import with_texts

Bytes = list[bytes | None]
Headers = list[tuple[str, str | bytes | None]]
"""A record's headers: names, and values as librdkafka takes them."""
_BIG_ENDIAN = {pa.int64(): ">i8", pa.int32(): ">i4", pa.float64(): ">f8"}


def encoded(column: pa.ChunkedArray | pa.Array) -> Bytes:
    """Each row's bytes, as Kafka's serializer for the column's type writes them; null stays None.

    Strings as UTF-8, numbers big-endian, structs as compact JSON; the same text for the same key, always.
    """
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        binary = pa.binary() if pa.types.is_string(kind) else pa.large_binary()
        return cast(Bytes, column.cast(binary).to_pylist())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return cast(Bytes, column.to_pylist())
    if kind in _BIG_ENDIAN:
        return _numbers(column, _BIG_ENDIAN[kind])
    if pa.types.is_struct(kind):
        return [None if row is None else orjson.dumps(with_texts(row)) for row in column.to_pylist()]
    raise AssertionError(f"no format for {kind}: the compiler lets no such column through")


def encoded_column(column: pa.ChunkedArray) -> pa.LargeBinaryArray:
    """The same as a column."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        # To large_binary first: all of a batch's chunks together may be too much for the small offsets.
        return column.cast(pa.large_binary()).combine_chunks()
    return pa.array(encoded(column), pa.large_binary())


def windowed_keys(
    keys: Bytes, starts: pa.ChunkedArray | pa.Array, ends: pa.ChunkedArray | pa.Array | None = None
) -> Bytes:
    """Keys of windows as Kafka's TimeWindowedSerializer writes them: the key's bytes, then 8 of the start in ms.

    With `ends` those of sessions, as SessionWindowedSerializer writes them: 8 bytes of the end before the start.
    """
    times = _numbers(starts, ">i8")
    if ends is not None:
        times = [(end or b"") + (start or b"") for end, start in zip(_numbers(ends, ">i8"), times, strict=True)]
    return [None if key is None or time is None else key + time for key, time in zip(keys, times, strict=True)]


def _numbers(column: pa.ChunkedArray | pa.Array, big_endian: str) -> Bytes:
    width = int(big_endian[-1])
    values = column.fill_null(0).to_numpy()
    if big_endian == ">f8":
        values = np.where(np.isnan(values), np.nan, values)  # Java writes one pattern for every NaN
    data = values.astype(big_endian).tobytes()
    rows: Bytes = [data[at : at + width] for at in range(0, len(data), width)]
    if column.null_count:
        for row, valid in enumerate(column.is_valid().to_pylist()):
            if not valid:
                rows[row] = None
    return rows


def headers_of(rows: Sequence[Any]) -> list[Headers | None]:
    """The headers of records as they are sent, from the rows of the column _headers."""
    return [None if row is None else [(each["key"], each["value"]) for each in row] for row in rows]
