"""What times are worked out with: Python's ints, and what many at once are. It loads no zone."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Protocol


class Arithmetic(Protocol):
    """What numbers of one kind (ints, numpy's vectors, Spark's columns) do beside adding and subtracting."""

    def rank(self, points: tuple[int, ...], value: Any) -> Any:
        """How many of the points, which are sorted, are at most the value."""

    def at(self, numbers: tuple[int, ...], index: Any) -> Any:
        """The number at an index from 0."""

    def larger(self, one: Any, other: Any) -> Any:
        """The larger of two."""

    def smaller(self, one: Any, other: Any) -> Any:
        """The smaller of two."""

    def rest(self, value: Any, divisor: int) -> Any:
        """What is left of a division, at least 0."""


class WholeNumbers:
    """Python's ints."""

    def rank(self, points: tuple[int, ...], value: int) -> int:
        return bisect_right(points, value)

    def at(self, numbers: tuple[int, ...], index: int) -> int:
        return numbers[index]

    def larger(self, one: int, other: int) -> int:
        return max(one, other)

    def smaller(self, one: int, other: int) -> int:
        return min(one, other)

    def rest(self, value: int, divisor: int) -> int:
        return value % divisor


WHOLE_NUMBERS = WholeNumbers()
