"""Windows of whole days by the clock of a time zone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from streams_runtime.time_zones.arithmetic import WHOLE_NUMBERS, Arithmetic
from streams_runtime.time_zones.zone_clock import ZoneClock, clock_of

DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class DayCalendar:
    """Windows that begin when a clock first shows `offset` after a midnight, every `every` from 1970-01-01 on; in ms.

    Each ends where the next one begins, so it is longer or shorter than `every` where the clock is set. Of days that
    the clock leaves out there is no window.
    """

    clock: ZoneClock
    every: int
    offset: int

    def start_of(self, moment: Any, by: Arithmetic = WHOLE_NUMBERS) -> Any:
        """When the window begins that a moment lies in."""
        return self.began(self.begun_at(moment, by), by)

    def end_of(self, moment: Any, by: Arithmetic = WHOLE_NUMBERS) -> Any:
        """When the window ends that a moment lies in: the first moment after it."""
        return self.ended(self.begun_at(moment, by), by)

    @property
    def longest(self) -> int:
        """No window is longer."""
        return self.every + self.clock.set_back_within(self.every + 2 * DAY)

    def begun_at(self, moment: Any, by: Arithmetic) -> Any:
        """What the clock showed, or jumped over, when the window began that a moment lies in."""
        shown = self.clock.shown(moment, by)
        return shown - by.rest(shown - self.offset, self.every)

    def began(self, begun: Any, by: Arithmetic) -> Any:
        """The start of a window by `begun_at`."""
        return self.clock.first_moment(begun, by)

    def ended(self, begun: Any, by: Arithmetic) -> Any:
        """Its end."""
        return self.clock.first_moment(begun + self.every, by)


@lru_cache(maxsize=4096)
def end_of_window(zone: str, every: int, offset: int, start: int) -> int:
    """DayCalendar.end_of for windows that are asked about one by one, of which many have one start."""
    end: int = calendar_of(zone, every, offset).end_of(start)
    return end


@lru_cache(maxsize=64)
def calendar_of(zone: str, every: int, offset: int) -> DayCalendar:
    """Windows of whole days in a zone (zone_file.zone_names); `every` and `offset` in ms."""
    return DayCalendar(clock_of(zone), every, offset)
