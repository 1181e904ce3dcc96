"""New rows of a table as the steps behind it read them."""

from __future__ import annotations

import pyarrow as pa

from streams_runtime.batch.columns import (
    NULL_VALUE,
    WINDOW_END,
    WINDOW_START,
)


def table_rows(
    keys: pa.Array,
    partitions: pa.Array,
    timestamps: pa.Array,
    columns: pa.Table,
    windows: tuple[pa.Array, pa.Array] | None = None,
    gone: pa.Array | None = None,
) -> pa.Table:
    """New rows of a table as the next stage reads them: metadata, `_null`, then the table's columns.

    `windows` are starts and ends (ms) where each row is one window; `gone` says which rows were deleted.
    """
    rows = len(partitions)
    metadata = {
        "_key": keys,
        "_timestamp": moments(timestamps),
        "_topic": pa.nulls(rows, pa.string()),
        "_partition": partitions,
        "_offset": pa.nulls(rows, pa.int64()),
        "_headers": pa.nulls(rows, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        NULL_VALUE: pa.repeat(False, rows) if gone is None else gone,
    }
    if windows is not None:
        metadata |= {WINDOW_START: moments(windows[0]), WINDOW_END: moments(windows[1])}
    return pa.table(metadata | {name: columns[name] for name in columns.column_names})


def moments(milliseconds: pa.Array) -> pa.Array:
    """Times in ms as Spark has them."""
    return milliseconds.cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
