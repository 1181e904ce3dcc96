"""Starts and ends of many windows at once, in numpy's vectors and Arrow's columns."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from streams_runtime.batch.vectors import Vector, integers
from streams_runtime.topology.nodes.window_kinds import SlidingWindows, TimeWindows

_FEW = 200


class Vectors:
    """Numpy's vectors of ints (time_zones.arithmetic.Arithmetic)."""

    def rank(self, points: tuple[int, ...], value: Vector) -> Vector:
        return np.searchsorted(_vector(points), value, side="right")

    def at(self, numbers: tuple[int, ...], index: Vector) -> Vector:
        return _vector(numbers)[index]

    def larger(self, one: Vector, other: Vector) -> Vector:
        return np.maximum(one, other)

    def smaller(self, one: Vector, other: Vector) -> Vector:
        return np.minimum(one, other)

    def rest(self, value: Vector, divisor: int) -> Vector:
        return value % divisor


VECTORS = Vectors()


def bounds_of(windows: TimeWindows, times: Vector) -> tuple[Vector, Vector]:
    """Starts and ends of the last windows that begin at these times or before them; all in ms."""
    begins = None if windows.timezone is None else _begins(windows, times)
    if begins is None:
        starts = windows.aligned(times, VECTORS)
        return starts, windows.end_of(starts, VECTORS)
    number = np.searchsorted(begins, times, side="right")
    return begins[number - 1], begins[number]


def ends_of(windows: TimeWindows | SlidingWindows, starts: Vector) -> Vector:
    """When the windows end that begin at these times (ms)."""
    if isinstance(windows, TimeWindows) and windows.timezone is not None:
        return bounds_of(windows, starts)[1]
    return starts + windows.size


def arrow_ends(windows: TimeWindows, starts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same for a column without nulls."""
    return pa.chunked_array([integers(ends_of(windows, starts.to_numpy()))])


def _begins(windows: TimeWindows, times: Vector) -> Vector | None:
    """When windows of a time zone begin, from the first that one of the times lies in until after the last. To search
    among few takes a tenth of the time that the tables of the zone take; None: they are many.
    """
    if not len(times) or (int(times.max()) - int(times.min())) // windows.size > _FEW:
        return None
    last, begins = int(times.max()), [windows.aligned(int(times.min()))]
    while begins[-1] <= last:
        begins.append(windows.end_of(begins[-1]))
    return np.array(begins, np.int64)


@lru_cache(maxsize=256)
def _vector(numbers: tuple[int, ...]) -> Vector:
    return np.array(numbers, np.int64)
