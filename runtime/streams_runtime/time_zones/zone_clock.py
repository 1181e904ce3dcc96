"""A time zone's clock that is never set back: what it shows at a moment, and the first moment at which it shows that.

A clock that people set back shows some times twice. This one stands still until the other has caught up with it, so
that what it shows never becomes less: the first of two equal times of day counts. Where people set theirs forward, it
jumps with it, and reaches the times that are left out all at once, in the moment of the jump.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from streams_runtime.time_zones.arithmetic import WHOLE_NUMBERS, Arithmetic
from streams_runtime.time_zones.zone_file import CYCLE, zone_history

_NEVER = 2**62
_CYCLE = CYCLE * 1000


@dataclass(frozen=True, slots=True)
class ZoneClock:
    """A zone's clock; all in ms. Time falls into spans of one offset each, of which the first and the last are open.

    What it shows is a time of day and date as if these were UTC. Moments from a year before 1970 on are exact, earlier
    ones go by the offset of then.
    """

    changes: tuple[int, ...]
    """When each span but the last one ends."""
    ends: tuple[int, ...]
    """The same, and for the last one a time that never comes."""
    offsets: tuple[int, ...]
    """By how much the zone is ahead of UTC in each span."""
    peaks: tuple[int, ...]
    """The most that the clock has shown before each span."""
    firsts: tuple[int, ...]
    """What it shows in the first moment of each span but the first one."""
    repeats_from: int
    repeats_from_shown: int
    """The moment from which on spans come again after 400 years, and what the clock shows then."""

    def shown(self, moment: Any, by: Arithmetic = WHOLE_NUMBERS) -> Any:
        """What the clock shows at a moment."""
        near = by.smaller(moment, by.rest(moment - self.repeats_from, _CYCLE) + self.repeats_from)
        span = by.rank(self.changes, near)
        return by.larger(near + by.at(self.offsets, span), by.at(self.peaks, span)) + (moment - near)

    def first_moment(self, shown: Any, by: Arithmetic = WHOLE_NUMBERS) -> Any:
        """The first moment at which the clock shows so much, or more."""
        near = by.smaller(shown, by.rest(shown - self.repeats_from_shown, _CYCLE) + self.repeats_from_shown)
        span = by.rank(self.firsts, near - 1)
        return by.smaller(near - by.at(self.offsets, span), by.at(self.ends, span)) + (shown - near)

    def set_back_within(self, time: int) -> int:
        """By how much, at most, the clock is set back in all within so much time."""
        most = 0
        for number, moment in enumerate(self.changes):
            earliest = bisect_right(self.changes, moment - time - 1)
            most = max(most, max(self.offsets[earliest : number + 1]) - self.offsets[number + 1])
        return most


@lru_cache(maxsize=64)
def clock_of(zone: str) -> ZoneClock:
    """The clock of a zone by its name, which has to be one of zone_file.zone_names."""
    first, changes, repeats_from = zone_history(zone)
    offsets = (first * 1000, *(each.offset * 1000 for each in changes))
    moments = tuple(each.moment * 1000 for each in changes)
    peaks, firsts = [-_NEVER], []
    for moment, (before, after) in zip(moments, pairwise(offsets), strict=True):
        peaks.append(max(peaks[-1], moment + before - 1))
        firsts.append(max(peaks[-1], moment + after))
    whole = ZoneClock(moments, (*moments, _NEVER), offsets, tuple(peaks), tuple(firsts), _NEVER, _NEVER)
    since = repeats_from * 1000
    return replace(whole, repeats_from=since, repeats_from_shown=whole.shown(since))
