"""Numbers over the last half minute, as Kafka's own metrics have them: two samples of 30 s, and totals beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

WINDOW = 30.0
"""Seconds of a sample (Kafka's metrics.sample.window.ms); two are kept (metrics.num.samples)."""
_LEAST = 1.0  # seconds; a rate over less says nothing
_MOST = 4096  # timestamps of a batch that are looked at


@dataclass(frozen=True, slots=True)
class Spread:
    """How many numbers there were, their sum, and the lowest and the highest of them."""

    count: int = 0
    total: float = 0
    low: float = inf
    high: float = -inf

    def __add__(self, other: Spread) -> Spread:
        """Both together."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Spread(self.count + other.count, self.total + other.total, low, high)

    def ages(self, now: float) -> Spread:
        """Of timestamps: how old they are `now`, in the same unit."""
        return Spread(self.count, self.count * now - self.total, now - self.high, now - self.low)


NOTHING = Spread()


def spread_of(timestamps: Sequence[int]) -> Spread:
    """The spread of timestamps; of many only each n-th is looked at, so that it costs the same however many there are.

    The highest and the lowest may be missed then.
    """
    some = timestamps[:: len(timestamps) // _MOST + 1]
    return Spread(len(some), sum(some), min(some), max(some)) if len(some) else NOTHING


@dataclass(frozen=True, slots=True)
class Reading:
    """What was measured lately (`recent`), how often and how much of it a second, and what was measured in all."""

    recent: Spread = NOTHING
    rate: float = 0.0
    total_rate: float = 0.0
    count: int = 0
    total: float = 0

    @property
    def average(self) -> float | None:
        """None where nothing was measured lately."""
        return self.recent.total / self.recent.count if self.recent.count else None

    @property
    def highest(self) -> float | None:
        """None where nothing was measured lately."""
        return self.recent.high if self.recent.count else None

    @property
    def lowest(self) -> float | None:
        """None where nothing was measured lately."""
        return self.recent.low if self.recent.count else None

    def __add__(self, other: Reading) -> Reading:
        """What two of them measure together."""
        return Reading(
            self.recent + other.recent,
            self.rate + other.rate,
            self.total_rate + other.total_rate,
            self.count + other.count,
            self.total + other.total,
        )


_Sample = tuple[float, Spread]
_State = tuple[_Sample, _Sample, int, float]


class Sampled:
    """One thing that is measured. One thread records; others read at any time, without a lock.

    What they read is one tuple, which each record replaces as a whole.
    """

    __slots__ = ("_state",)

    def __init__(self) -> None:
        nothing: _Sample = (-inf, NOTHING)
        self._state: _State = (nothing, nothing, 0, 0)

    def record(self, value: float, now: float) -> None:
        """One number more; `now` by the clock that `reading` goes by, in seconds."""
        self.record_all(Spread(1, value, value, value), now)

    def record_all(self, spread: Spread, now: float) -> None:
        """Several numbers at once."""
        before, (began, current), count, total = self._state
        if now - began >= WINDOW:
            before, began, current = (began, current), now, NOTHING
        self._state = before, (began, current + spread), count + spread.count, total + spread.total

    def reading(self, now: float) -> Reading:
        """What was measured in the samples that are not too old, and in all."""
        before, current, count, total = self._state
        kept = [(began, spread) for began, spread in (before, current) if now - began < 2 * WINDOW]
        if not kept:
            return Reading(count=count, total=total)
        seconds = max(now - kept[0][0], _LEAST)
        recent = sum((spread for _, spread in kept), NOTHING)
        return Reading(recent, recent.count / seconds, recent.total / seconds, count, total)
