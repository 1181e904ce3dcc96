"""What each aggregate function keeps, how what it kept of two sets of records becomes one, and what a user sees of it.

A kind whose one part has no name keeps what a user sees, and that is its column; others keep a JSON object.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.api.python_aggregates import PYTHON
from streams_runtime.api.reduce_aggregates import REDUCE, reduction_of
from streams_runtime.state.aggregate_kind import Kind
from streams_runtime.state.collected import Collected
from streams_runtime.state.custom import Custom
from streams_runtime.state.distinct import DistinctCount
from streams_runtime.state.percentile import Percentile
from streams_runtime.state.reducing import Reducing
from streams_runtime.state.user_class import user_class
from streams_runtime.topology.nodes import Aggregate

_Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]


class Total(Kind):
    """count and sum."""

    def __init__(self, function: str) -> None:
        self._function = function

    def expressions(self, argument: str | None) -> Sequence[str]:
        return (f"{self._function}({argument or '1'})",)

    def merge(self, old: Sequence[pa.ChunkedArray], new: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        return (_both(old[0], new[0]),)


class Extreme(Kind):
    """min and max."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._choose = pc.min_element_wise if function == "min" else pc.max_element_wise

    def expressions(self, argument: str | None) -> Sequence[str]:
        return (f"{self._function}({argument})",)

    def merge(self, old: Sequence[pa.ChunkedArray], new: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        return (self._choose(_ordered(old[0]), _ordered(new[0]), skip_nulls=True).cast(old[0].type),)


class Average(Kind):
    """avg."""

    parts = ("sum", "count")
    kept: ClassVar[Mapping[str, pa.DataType]] = {"sum": pa.float64(), "count": pa.int64()}

    def expressions(self, argument: str | None) -> Sequence[str]:
        return f"sum(cast({argument} as double))", f"count({argument})"

    def merge(self, old: Sequence[pa.ChunkedArray], new: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        return [_both(one, other) for one, other in zip(old, new, strict=True)]

    def finish(self, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
        total, count = parts
        return pc.divide(total, _or_null(count, pc.greater(count, 0)))

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return parts["sum"] / parts["count"] if parts["count"] else None


class Spread(Kind):
    """Variances and standard deviations: how many, their mean, and the sum of squared distances from it.

    Two sets of records are put together as Chan, Golub and LeVeque do it, which does not lose digits as sums of squares
    would. `sample`: divided by one less than how many there are; null for a single value, as in SQL.
    """

    parts = ("count", "mean", "squares")
    kept: ClassVar[Mapping[str, pa.DataType]] = {"count": pa.int64(), "mean": pa.float64(), "squares": pa.float64()}

    def __init__(self, sample: bool, root: bool) -> None:
        self._less = 1 if sample else 0
        self._root = root

    def expressions(self, argument: str | None) -> Sequence[str]:
        number = f"cast({argument} as double)"
        return f"count({number})", f"avg({number})", f"var_pop({number}) * count({number})"

    def merge(self, old: Sequence[pa.ChunkedArray], new: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        (n, mean, squares), (m, other_mean, other_squares) = (_numbers(each) for each in (old, new))
        together = n + m
        some = np.maximum(together, 1)
        apart = np.where((n > 0) & (m > 0), other_mean - mean, 0)
        mean = np.where(n > 0, mean + apart * (m / some), other_mean)
        squares = squares + other_squares + apart * apart * (n * (m / some))
        none = together == 0
        return (
            pa.chunked_array([pa.array(together.astype(np.int64))]),
            pa.chunked_array([pa.array(mean, mask=none)]),
            pa.chunked_array([pa.array(squares, mask=none)]),
        )

    def finish(self, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
        count, _, squares = parts
        divisor = pc.subtract(count, self._less)
        variance = pc.divide(squares, _or_null(divisor, pc.greater(divisor, 0)))
        return pc.sqrt(variance) if self._root else variance

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        divisor = (parts["count"] or 0) - self._less
        if divisor <= 0:
            return None
        variance = parts["squares"] / divisor
        return math.sqrt(variance) if self._root else variance


class Nth(Kind):
    """first and last: the argument of one record, by the order of offsets; null if it is null there.

    `at` is that record's offset, null where there was none.
    """

    parts = ("at", "value")
    kept: ClassVar[Mapping[str, pa.DataType]] = {"at": pa.int64()}

    def __init__(self, first: bool) -> None:
        self._first = first

    def expressions(self, argument: str | None) -> Sequence[str]:
        end = "min" if self._first else "max"
        return f"{end}(_offset)", f"{end}_by({argument}, _offset)"

    def merge(self, old: Sequence[pa.ChunkedArray], new: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        # Not by offsets: those of a topic that was made anew begin again.
        before, after = (old, new) if self._first else (new, old)
        return _chosen(pc.is_valid(before[0]), before, after)

    def join(self, one: Sequence[pa.ChunkedArray], other: Sequence[pa.ChunkedArray]) -> Sequence[pa.ChunkedArray]:
        wanted = pc.less_equal(one[0], other[0]) if self._first else pc.greater_equal(one[0], other[0])
        return _chosen(pc.coalesce(wanted, pc.is_valid(one[0])), one, other)

    def finish(self, parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
        return parts[1]

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return parts["value"]


_PLAIN: Mapping[str, Kind] = {
    "count": Total("count"),
    "sum": Total("sum"),
    "min": Extreme("min"),
    "max": Extreme("max"),
    "avg": Average(),
    "first": Nth(first=True),
    "last": Nth(first=False),
    "var_pop": Spread(sample=False, root=False),
    "var_samp": Spread(sample=True, root=False),
    "variance": Spread(sample=True, root=False),
    "stddev_pop": Spread(sample=False, root=True),
    "stddev_samp": Spread(sample=True, root=True),
    "stddev": Spread(sample=True, root=True),
    "approx_count_distinct": DistinctCount(),
}
_WITH_PARAMETER: Mapping[str, Callable[[str], Kind]] = {
    "approx_percentile": lambda which: Percentile(Fraction(which)),
    "collect_list": lambda most: Collected(int(most), distinct=False),
    "collect_set": lambda most: Collected(int(most), distinct=True),
}
KINDS = (*_PLAIN, *_WITH_PARAMETER)
"""The names of all functions, as Spark SQL has them."""


def kind_of(declared: Aggregate, merges: bool = False) -> Kind | None:
    """The kind of a declared aggregate; None for a function that is not python, reduce or one of KINDS.

    Raises ConfigException: a class in Python is not there, or lacks something (user_class.user_class).
    """
    if declared.function == PYTHON:
        return Custom(user_class(declared.parameter or "", merges))
    if declared.function == REDUCE:
        return Reducing(reduction_of(declared.parameter or ""))
    if declared.function in _WITH_PARAMETER and declared.parameter is not None:
        return _WITH_PARAMETER[declared.function](declared.parameter)
    return _PLAIN.get(declared.function)


def _chosen(
    wanted: pa.ChunkedArray, one: Sequence[pa.ChunkedArray], other: Sequence[pa.ChunkedArray]
) -> list[pa.ChunkedArray]:
    """Each row of the one where it is wanted, else of the other."""
    return [pc.if_else(wanted, mine, theirs) for mine, theirs in zip(one, other, strict=True)]


def _both(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.coalesce(pc.add_checked(old, new), old, new)


def _ordered(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow does not compare times with a zone, nor booleans; the numbers beneath them have the same order."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column


def _or_null(count: pa.ChunkedArray, wanted: pa.ChunkedArray) -> pa.ChunkedArray:
    """The counts that are wanted as doubles, null for the others."""
    return pc.if_else(wanted, count, pa.scalar(None, pa.int64())).cast(pa.float64())


def _numbers(parts: Sequence[pa.ChunkedArray]) -> list[_Numbers]:
    return [pc.fill_null(part.cast(pa.float64()), 0.0).to_numpy() for part in parts]
