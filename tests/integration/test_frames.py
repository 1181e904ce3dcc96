"""Tables as DataFrames, whatever chunks they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from streams_runtime.pipeline.frames import frame_of

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
