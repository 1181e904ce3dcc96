"""Tables as DataFrames, whatever chunks they have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from streams_runtime.pipeline.spark.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("sizes", [[], [0], [2], [0, 0, 2], [2, 0, 3], [1, 0, 0, 2, 0]])
def test_no_row_is_lost_behind_a_chunk_without_rows(spark: SparkSession, sizes: list[int]) -> None:
    numbers = iter(range(100))
    rows = [[[next(numbers)] for _ in range(size)] for size in sizes]
    lists = pa.chunked_array([pa.array(each, pa.list_(pa.int64())) for each in rows], pa.list_(pa.int64()))
    found = frame_of(spark, pa.table({"lists": lists})).toArrow()
    assert found["lists"].to_pylist() == [each for chunk in rows for each in chunk]


_PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])
_AT = pa.timestamp("us", tz="UTC")
_NESTED = {
    "no headers": (pa.list_(_PAIR), [None] * 4),
    "headers": (pa.list_(_PAIR), [None, [{"key": "a", "value": b"1"}], None, [{"key": "b", "value": None}, None]]),
    "lists": (pa.list_(pa.list_(pa.int64())), [[[1], None], None, [None, [2, 3]], None]),
    "times": (pa.list_(_AT), [None, [datetime(2026, 1, 1, tzinfo=UTC), None], None, []]),
    "maps": (pa.map_(pa.string(), _PAIR), [None, [("a", {"key": "b", "value": b"2"})], None, []]),
    "within": (pa.struct([("pairs", pa.list_(_PAIR)), ("at", _AT)]), [None, {"pairs": None, "at": None}] * 2),
}


def test_nested_columns_with_nulls_lie_in_as_many_chunks_as_others_have(spark: SparkSession) -> None:
    columns = {name: pa.array(rows, kind) for name, (kind, rows) in _NESTED.items()}
    longer = pa.array([[None], [None], *columns["lists"].to_pylist()], columns["lists"].type).slice(2)
    inside = pa.StructArray.from_arrays([longer], names=["lists"])
    numbers = pa.chunked_array([[0], [1, 2], [3]])
    table = pa.table({"number": numbers, **columns, "begins later": longer, "begins later within": inside})
    assert frame_of(spark, table).toArrow().to_pylist() == table.to_pylist()
