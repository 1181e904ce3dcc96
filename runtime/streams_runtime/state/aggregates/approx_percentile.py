"""approx_percentile: how many values there were in each of many narrow ranges (DDSketch, Masson et al., VLDB 2019).

Ranges grow by a constant factor, so that a value is known to 1 % wherever it lies. Counts only add up: unlike with
sketches that choose by chance (KLL) or by the order of values (t-digest), the result does not depend on where batches
begin, nor on how often one is repeated. It is written here in whole columns; libraries take value after value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa

from streams_runtime.state.aggregates.aggregate_kind import Columns, Kind
from streams_runtime.state.aggregates.list_rows import ROW, elements, lists

ERROR = 0.01
"""What is shown is at most this part of the value away from a value that was there."""
MOST_BUCKETS = 2048
"""So many ranges at most are kept; with one sign they reach over 17 powers of ten."""
_GROWTH = (1 + ERROR) / (1 - ERROR)
_LOG_GROWTH = math.log(_GROWTH)
# Bucket 0 is zero. A positive number is in one with a positive number, a negative one in one with a negative number,
# and buckets are in the order of their values: logarithms of doubles lie within 37,300 steps of that of 1.
_ONE = 40_000
_INFINITE, _NAN = 1_000_000, 1_000_001  # NaN is larger than all, as in Spark
_BUCKETS, _COUNTS = pa.list_(pa.int32()), pa.list_(pa.int64())
_Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]
_Ids = np.ndarray[tuple[int], np.dtype[np.int32]]


class Percentile(Kind):
    """The smallest value below which, or at which, this part of all values lies, to 1 %; nulls are none."""

    parts = ("buckets", "counts")
    given = ("values",)
    kept: ClassVar[Mapping[str, pa.DataType]] = {"buckets": _BUCKETS, "counts": _COUNTS}

    def __init__(self, part: Fraction) -> None:
        self._part = part

    def expressions(self, argument: str | None) -> Sequence[str]:
        return (f"collect_list(cast({argument} as double))",)

    def of_batch(self, given: Columns) -> Columns:
        found = elements({"values": given[0]})
        buckets = buckets_of(found["values"].to_numpy())
        return _counted(found.select(ROW, buckets=pl.Series(buckets), counts=pl.lit(1, pl.Int64)), len(given[0]))

    def merge(self, old: Columns, new: Columns) -> Columns:
        both = pl.concat([elements(dict(zip(self.parts, each, strict=True))) for each in (old, new)])
        return _counted(both, len(old[0]))

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        found = elements(dict(zip(self.parts, parts, strict=True)))
        up_to, count = pl.col("counts").cum_sum().over(ROW), pl.col("counts").sum().over(ROW)
        # Whole numbers only: of 100 values 0.07 is the seventh, and 0.07 * 100 is more than 7.
        place = (count * self._part.numerator + self._part.denominator - 1) // self._part.denominator
        there = found.filter(up_to >= place).unique(ROW, keep="first", maintain_order=True)
        there = there.select(ROW, value=pl.Series(values_of(there["buckets"].to_numpy())))
        whole = pl.DataFrame({ROW: pl.int_range(len(parts[0]), dtype=pl.UInt32, eager=True)})
        seen = whole.join(there, on=ROW, how="left", maintain_order="left")["value"]
        return pa.chunked_array([seen.to_arrow()])

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        buckets, counts = parts["buckets"] or [], parts["counts"] or []
        left = math.ceil(self._part * sum(counts))
        for bucket, count in zip(buckets, counts, strict=True):
            left -= count
            if left <= 0:
                return float(values_of(np.array([bucket], np.int32))[0])
        return None


def buckets_of(values: _Numbers) -> _Ids:
    """The bucket of each value."""
    sizes = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.copysign(_ONE + np.ceil(np.log(sizes) / _LOG_GROWTH), values)
    found = np.where(np.isinf(values), np.copysign(_INFINITE, values), np.where(sizes == 0, 0, found))
    return np.where(np.isnan(values), _NAN, found).astype(np.int32)


def values_of(buckets: _Ids) -> _Numbers:
    """The value that stands for all of a bucket."""
    steps = np.abs(buckets).astype(np.float64) - _ONE
    with np.errstate(over="ignore"):
        sizes = np.minimum(np.exp((steps - 1) * _LOG_GROWTH) * (2 * _GROWTH / (_GROWTH + 1)), np.finfo(np.float64).max)
    sizes = np.where(np.abs(buckets) == _INFINITE, np.inf, sizes)
    found: _Numbers = np.where(buckets == 0, 0.0, np.where(buckets == _NAN, np.nan, np.copysign(sizes, buckets)))
    return found


def _counted(frame: pl.DataFrame, rows: int) -> Columns:
    """Buckets and counts of each row, each bucket once, in their order."""
    counted = frame.group_by(ROW, "buckets").agg(pl.col("counts").sum()).sort(ROW, "buckets")
    smallest = counted.group_by(ROW).agg(pl.col("buckets").get(-MOST_BUCKETS, null_on_oob=True).alias("smallest"))
    if smallest["smallest"].null_count() < len(smallest):
        # Too many: the smallest values count as the smallest of those buckets that stay.
        kept = pl.max_horizontal("buckets", "smallest").alias("buckets")
        frame = counted.join(smallest, on=ROW).select(ROW, kept, "counts")
        counted = frame.group_by(ROW, "buckets").agg(pl.col("counts").sum()).sort(ROW, "buckets")
    return lists(counted, rows, {"buckets": _BUCKETS, "counts": _COUNTS})
