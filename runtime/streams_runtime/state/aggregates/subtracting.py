"""Aggregates of a table's rows, of which a row that leaves a group is taken out again: count, count_if, sum and avg.

A record has what comes to a group in `new` and what leaves it in `old`; of the counts that is a 1, of sums and averages
a number, and null counts as nothing. Numbers are kept exactly, doubles too, so that a group is what the rows that are
in it now come to, whatever was in it before and in whichever order that came and went: what is rounded is only what is
shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.state.aggregates.aggregate_kind import Columns, Kind
from streams_runtime.topology.nodes.aggregate_node import Aggregate

_WIDE = "decimal(20, 0)"  # what is added up within a batch may be more than what remains of it


class Exact:
    """A sum of finite doubles, as `number` times 2 to the power of minus `exponent`."""

    __slots__ = ("exponent", "number")

    def __init__(self, text: str = "0p-0") -> None:
        """As `text` gives it. Raises ValueError: it is no such text."""
        number, _, exponent = text.partition("p-")
        self.number, self.exponent = int(number), int(exponent)

    def add(self, number: int, exponent: int) -> None:
        """Add another one."""
        if exponent > self.exponent:
            self.number, self.exponent = self.number << exponent - self.exponent, exponent
        self.number += number << self.exponent - exponent

    def add_all(self, values: Iterable[float], sign: int) -> None:
        """Add doubles, or take them away."""
        for value in values:
            numerator, denominator = value.as_integer_ratio()
            self.add(sign * numerator, denominator.bit_length() - 1)

    @property
    def text(self) -> str:
        """It as text, the same for the same sum."""
        zeros = (self.number & -self.number).bit_length() - 1
        spare = self.exponent if zeros < 0 else min(zeros, self.exponent)
        return f"{self.number >> spare}p-{self.exponent - spare}"

    def divided(self, count: int) -> float:
        """The double that is nearest to an equal part of it; infinite where none is."""
        try:
            return self.number / (count << self.exponent)
        except OverflowError:
            return math.copysign(math.inf, self.number)


class Counted(Kind):
    """count and count_if."""

    def __init__(self, column: str) -> None:
        """`column`: what it takes of a row."""
        self._new, self._old = _sides(column)

    def expressions(self, argument: str | None) -> Sequence[str]:  # noqa: ARG002 - a kind's signature
        return (f"count({self._new}) - count({self._old})",)

    def merge(self, old: Columns, new: Columns) -> Columns:
        return (_both(old[0], new[0]),)


class WholeSum(Kind):
    """sum of whole numbers: null where no row has one, so that it is counted how many have."""

    parts = ("sum", "count")
    kept: ClassVar[Mapping[str, pa.DataType]] = {"count": pa.int64()}

    def __init__(self, column: str) -> None:
        """`column`: what it takes of a row."""
        self._new, self._old = _sides(column)

    def expressions(self, argument: str | None) -> Sequence[str]:  # noqa: ARG002 - a kind's signature
        added, taken = (f"coalesce(sum(cast({side} as {_WIDE})), 0)" for side in (self._new, self._old))
        return f"cast({added} - {taken} as bigint)", f"count({self._new}) - count({self._old})"

    def merge(self, old: Columns, new: Columns) -> Columns:
        return [_both(before, more) for before, more in zip(old, new, strict=True)]

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        total, count = parts
        return pc.if_else(pc.greater(count, 0), total, pa.scalar(None, total.type))

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return parts["sum"] if parts["count"] else None


class ExactSum(Kind):
    """sum of FLOAT or DOUBLE. Numbers that are not finite are counted apart, so that they leave without a trace."""

    parts = ("sum", "count", "nan", "up", "down")
    given = ("added", "taken")
    kept: ClassVar[Mapping[str, pa.DataType]] = {"sum": pa.string()} | dict.fromkeys(parts[1:], pa.int64())

    def __init__(self, column: str) -> None:
        """`column`: what it takes of a row."""
        self._new, self._old = _sides(column)

    def expressions(self, argument: str | None) -> Sequence[str]:  # noqa: ARG002 - a kind's signature
        return tuple(f"collect_list(cast({side} as double))" for side in (self._new, self._old))

    def of_batch(self, given: Columns) -> Columns:
        rows = [_of_lists(*both) for both in zip(*(each.to_pylist() for each in given), strict=True)]
        columns = zip(*rows, strict=True) if rows else ([] for _ in self.parts)
        return [
            pa.chunked_array([pa.array(column, self.kept[part])])
            for part, column in zip(self.parts, columns, strict=True)
        ]

    def merge(self, old: Columns, new: Columns) -> Columns:
        sums = [_sum_of(*both) for both in zip(old[0].to_pylist(), new[0].to_pylist(), strict=True)]
        counts = [_both(before, more) for before, more in zip(old[1:], new[1:], strict=True)]
        return [pa.chunked_array([pa.array(sums, pa.string())]), *counts]

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        rows = zip(*(part.to_pylist() for part in parts), strict=True)
        return pa.chunked_array([pa.array([self._shown(*row) for row in rows], pa.float64())])

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        return self._shown(*(parts[part] for part in self.parts))

    def result(self, total: Exact, count: int) -> float:  # noqa: ARG002 - that of averages
        """What is shown of so many finite numbers."""
        return total.divided(1)

    def _shown(self, total: str | None, count: int | None, nan: int, up: int, down: int) -> float | None:
        if total is None or not count:
            return None
        if nan or (up and down):
            return math.nan
        if up or down:
            return math.inf if up else -math.inf
        return self.result(Exact(total), count)


class ExactAverage(ExactSum):
    """avg."""

    def result(self, total: Exact, count: int) -> float:
        return total.divided(count)


def subtracting_kind(declared: Aggregate, of_doubles: bool) -> Kind | None:
    """The kind of an aggregate that rows are taken out of; None for a function that none can be taken out of.

    `of_doubles`: it is a sum that is a DOUBLE.
    """
    match declared.function:
        case "count" | "count_if":
            return Counted(declared.column)
        case "sum":
            return ExactSum(declared.column) if of_doubles else WholeSum(declared.column)
        case "avg":
            return ExactAverage(declared.column)
        case _:
            return None


def _sides(column: str) -> tuple[str, str]:
    return f"new.`{column}`", f"old.`{column}`"


def _both(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.coalesce(pc.add_checked(old, new), old, new)


def _of_lists(added: Sequence[float], taken: Sequence[float]) -> tuple[str, int, int, int, int]:
    total, nan, up, down = Exact(), 0, 0, 0
    for values, sign in ((added, 1), (taken, -1)):
        total.add_all(filter(math.isfinite, values), sign)
        nan += sign * sum(map(math.isnan, values))
        up += sign * values.count(math.inf)
        down += sign * values.count(-math.inf)
    return total.text, len(added) - len(taken), nan, up, down


def _sum_of(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return one or other
    total, more = Exact(one), Exact(other)
    total.add(more.number, more.exponent)
    return total.text
