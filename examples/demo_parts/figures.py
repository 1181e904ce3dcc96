"""What is known of a group of flights, as numbers that add up: two groups' figures make those of both together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOLERANCE = 1e-9
"""Relative difference that two sums of doubles may have: their order of adding differs."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums and extremes; None where no flight of the group has the value."""

    flights: int
    departures: int
    arrivals: int
    dep_delay_sum: float | None
    arr_delay_sum: float | None
    arr_delay_min: float | None
    arr_delay_max: float | None
    distance: float | None

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.flights + other.flights,
            self.departures + other.departures,
            self.arrivals + other.arrivals,
            _both(self.dep_delay_sum, other.dep_delay_sum, lambda one, two: one + two),
            _both(self.arr_delay_sum, other.arr_delay_sum, lambda one, two: one + two),
            _both(self.arr_delay_min, other.arr_delay_min, min),
            _both(self.arr_delay_max, other.arr_delay_max, max),
            _both(self.distance, other.distance, lambda one, two: one + two),
        )

    def row(self) -> Row:
        """The same with the columns of the stores in examples/flights.yaml."""
        return {
            "flights": self.flights,
            "arrivals": self.arrivals,
            "dep_delay_sum": self.dep_delay_sum,
            "dep_delay_avg": self.dep_delay_sum / self.departures if self.dep_delay_sum is not None else None,
            "arr_delay_sum": self.arr_delay_sum,
            "arr_delay_avg": self.arr_delay_sum / self.arrivals if self.arr_delay_sum is not None else None,
            "arr_delay_min": self.arr_delay_min,
            "arr_delay_max": self.arr_delay_max,
            "distance": self.distance,
        }


def different(ours: Row, theirs: Row) -> tuple[str, ...]:
    """The columns in which two rows differ."""
    return tuple(name for name in {**theirs, **ours} if not _equal(ours.get(name), theirs.get(name)))


def _equal(one: Any, two: Any) -> bool:
    if one is None or two is None:
        return one is two
    if isinstance(one, int) and isinstance(two, int):
        return one == two
    return math.isclose(one, two, rel_tol=TOLERANCE)


def _both(one: float | None, two: float | None, join: Any) -> float | None:
    if one is None or two is None:
        return two if one is None else one
    return float(join(one, two))
