"""Rows of a stream and of a table, as the state side of a join gets them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streams_runtime.batch.columns import OUT_VALUE
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, TableSourceNode

Row = tuple[int, str | None, int]
"""Partition, key and time."""
TABLE = TableSourceNode("users", "users", Format("string"), Format("bytes"), None, "users", "p")


def placed(topic: str, rows: Sequence[Row]) -> dict[str, pa.Array]:
    offsets: dict[int, int] = {}
    columns = {"_topic": pa.array([topic] * len(rows), pa.string())}
    numbers = [offsets.setdefault(at, 0) for at, *_ in rows]
    for row, (at, *_) in enumerate(rows):
        numbers[row] = offsets[at]
        offsets[at] += 1
    columns["_offset"] = pa.array(numbers, pa.int64())
    columns["_timestamp"] = pa.array([time * 1000 for *_, time in rows], pa.timestamp("us", tz="UTC"))
    return columns


def chunked(values: Sequence[object], kind: pa.DataType) -> pa.ChunkedArray:
    middle = len(values) // 2
    return pa.chunked_array([pa.array(values[:middle], kind), pa.array(values[middle:], kind)])


def changes_of(rows: Sequence[Row], values: Sequence[bytes | None], topic: str = "users") -> StoreBatch:
    columns = {OUT_VALUE: chunked(values, pa.binary()), **placed(topic, rows)}
    partitions, keys, times = zip(*rows, strict=True) if rows else ((), (), ())
    kinds = (pa.int32(), pa.string(), pa.int64())
    return StoreBatch(TABLE, *(map(chunked, (partitions, keys, times), kinds)), pa.table(columns))
