"""Windows of whole days by the clock of a time zone, in Spark's columns: by the tables that numpy and Python have, and
not by Java's own time zones, which may be of another year.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streams_runtime.topology.nodes.window_kinds import TimeWindows

_MONTH = 30 * 86_400_000
_BEGUN = "_calendar_begun"


def with_bounds(rows: DataFrame, time: str, windows: TimeWindows, start: str, end: str) -> DataFrame:
    """The rows with start and end of the window that the column `time` lies in (all in ms), by a zone's clock."""
    steps = _steps(windows, time)
    found = rows.select("*", *steps.arrays).select("*", steps.begun)
    return found.select(*(f"`{name}`" for name in rows.columns), steps.start.alias(start), steps.end.alias(end))


class _Columns(NamedTuple):
    """Constant arrays; with them what the clock showed when a record's window began; with it the window's bounds."""

    arrays: tuple[Column, ...]
    begun: Column
    start: Column
    end: Column


@lru_cache(maxsize=16)
def _steps(windows: TimeWindows, time: str) -> _Columns:
    """Made once: Spark takes longer to read such expressions than to put them into a plan."""
    calendar, by = windows.calendar, _SparkSql()
    begun = calendar.begun_at(_Sql(time), by).text
    bounds = [each(_Sql(_BEGUN), by).text for each in (calendar.began, calendar.ended)]
    arrays = (F.expr(_array(numbers)).alias(name) for numbers, name in by.arrays.items())
    return _Columns(tuple(arrays), F.expr(begun).alias(_BEGUN), *map(F.expr, bounds))


@dataclass(frozen=True, slots=True)
class _Sql:
    """An expression as text: each of Spark's columns costs a call into the JVM, and these are many."""

    text: str

    def __add__(self, other: _Sql | int) -> _Sql:
        return _Sql(f"({self.text} + {_text(other)})")

    def __sub__(self, other: _Sql | int) -> _Sql:
        return _Sql(f"({self.text} - {_text(other)})")


class _SparkSql:
    """Expressions in Spark SQL (time_zones.arithmetic.Arithmetic), and the constant arrays that they name."""

    def __init__(self) -> None:
        self.arrays: dict[tuple[int, ...], str] = {}

    def rank(self, points: tuple[int, ...], value: _Sql) -> _Sql:
        if not points:
            return _Sql("0L")
        table = _table(points)
        month = f"(({value.text} - {points[0]}L) div {_MONTH}L)"
        found = self.at(table.before, _Sql(f"least(greatest({month}, 0L), {len(table.before) - 1}L)"))
        for _ in range(table.most):
            found = found + _Sql(f"if({self.at(points, found).text} <= {value.text}, 1L, 0L)")
        return found

    def at(self, numbers: tuple[int, ...], index: _Sql) -> _Sql:
        name = self.arrays.setdefault(numbers, f"_calendar_array_{len(self.arrays)}")
        return _Sql(f"get({name}, {index.text})")

    def larger(self, one: _Sql, other: _Sql) -> _Sql:
        return _Sql(f"greatest({one.text}, {other.text})")

    def smaller(self, one: _Sql, other: _Sql) -> _Sql:
        return _Sql(f"least({one.text}, {other.text})")

    def rest(self, value: _Sql, divisor: int) -> _Sql:
        return _Sql(f"pmod({value.text}, {divisor}L)")


class _Table(NamedTuple):
    """Of sorted points: how many lie before each month since the first one, and how many a month has at most. With it
    Spark's expressions search as fast as a binary search would.
    """

    before: tuple[int, ...]
    most: int


@lru_cache(maxsize=16)
def _table(points: tuple[int, ...]) -> _Table:
    months = range((points[-1] - points[0]) // _MONTH + 2)
    before = tuple(bisect_left(points, points[0] + month * _MONTH) for month in months)
    return _Table(before, max(after - here for here, after in pairwise(before)))


def _text(value: _Sql | int) -> str:
    return value.text if isinstance(value, _Sql) else f"{value}L"


def _array(numbers: tuple[int, ...]) -> str:
    """A constant array; Spark works it out once for a query."""
    return f"cast(split('{','.join(map(str, numbers))}', ',') AS array<bigint>)"
