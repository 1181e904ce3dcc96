"""The windows that an aggregate divides a key's records by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streams_runtime.time_zones.arithmetic import WHOLE_NUMBERS, Arithmetic

if TYPE_CHECKING:
    from streams_runtime.time_zones.day_calendar import DayCalendar


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows [start, start + `size`) that begin `offset` after 1970 and at every `advance` from then on. All in ms.

    A window is closed once stream time has reached its end and `grace`. `retention` is that of its store. With
    `only_final` a window is passed on when it has closed, and not at each change.
    """

    size: int
    advance: int
    grace: int
    retention: int
    only_final: bool = False
    offset: int = 0
    """Less than `advance`. A record from before it is late: no window may begin before 1970."""
    timezone: str | None = None
    """Whose clock `size` and `offset` go by; then `advance` is `size`, whole days, and windows may last longer."""

    @property
    def may_begin_before_1970(self) -> bool:
        """Whether records of 1970 may fall into a window that would begin before it, which takes none."""
        return self.offset > 0 or self.timezone is not None

    @property
    def calendar(self) -> DayCalendar:
        """The days of windows with a time zone."""
        from streams_runtime.time_zones.day_calendar import calendar_of  # workers load zones where there is one

        assert self.timezone is not None, "the windows have a time zone"
        return calendar_of(self.timezone, self.size, self.offset)

    @property
    def longest(self) -> int:
        """No window is longer (ms)."""
        return self.size if self.timezone is None else self.calendar.longest

    def aligned(self, time: Any, by: Arithmetic = WHOLE_NUMBERS) -> Any:
        """The start of the last window that begins at a time or before it."""
        if self.timezone is not None:
            return self.calendar.start_of(time, by)
        return time - by.rest(time - self.offset, self.advance)

    def end_of(self, start: Any, by: Arithmetic = WHOLE_NUMBERS) -> Any:
        """When the window ends that begins at `start`; the window's key has only this."""
        if self.timezone is None:
            return start + self.size
        if by is not WHOLE_NUMBERS:
            return self.calendar.end_of(start, by)
        from streams_runtime.time_zones.day_calendar import end_of_window  # as in `calendar`

        return end_of_window(self.timezone, self.size, self.offset, start)

    def starts_of_ended(self, first: int, last: int) -> tuple[int, int]:
        """Between which starts, both inclusive, the windows lie that end between two times, both inclusive."""
        if self.timezone is not None:
            return self.aligned(first - 1), self.aligned(last) - 1
        return first - self.size, last - self.size

    @property
    def lengths(self) -> str:
        """How long the windows are and where they begin, in a user's words."""
        every = "" if self.advance == self.size else f" every {self.advance} ms"
        clock = "" if self.timezone is None else f" by the clock of {self.timezone}"
        return f"{self.size} ms{every}{clock}" + (f" with an offset of {self.offset} ms" if self.offset else "")

    @property
    def summary(self) -> str:
        """The windows in a user's words."""
        return f"windows of {self.lengths}, grace {self.grace} ms{_final(self.only_final)}"


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """Windows [start, start + `size`], both ends included, that begin or end with a key's records. All in ms.

    One ends at each record's time and one begins 1 ms after it, if any record lies in it. A window takes records until
    stream time has passed its end by more than `grace`. The rest is as in TimeWindows.
    """

    size: int
    grace: int
    retention: int
    only_final: bool = False

    @property
    def longest(self) -> int:
        """As long as all (ms)."""
        return self.size

    def end_of(self, start: int) -> int:
        """When the window ends that begins at `start`."""
        return start + self.size

    def starts_of_ended(self, first: int, last: int) -> tuple[int, int]:
        """Between which starts, both inclusive, the windows lie that end between two times, both inclusive."""
        return first - self.size, last - self.size

    @property
    def summary(self) -> str:
        """The windows in a user's words."""
        return f"sliding windows of {self.size} ms, grace {self.grace} ms{_final(self.only_final)}"


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Windows of a key's records that are at most `gap` apart, from the first one's time to the last one's. All in ms.

    A session is closed once stream time has passed its end by more than `gap` and `grace`. The rest is as in
    TimeWindows.
    """

    gap: int
    grace: int
    retention: int
    only_final: bool = False

    @property
    def summary(self) -> str:
        """The windows in a user's words."""
        return f"sessions with gaps of {self.gap} ms at most, grace {self.grace} ms{_final(self.only_final)}"


Windows = TimeWindows | SlidingWindows | SessionWindows


def closes_after(windows: Windows) -> int:
    """How far (ms) stream time has to come past a window's end until it is passed on as closed."""
    return windows.grace + (windows.gap if isinstance(windows, SessionWindows) else 0)


def bounds_differ(one: Windows | None, other: Windows | None) -> bool:
    """Whether the windows of one table begin or end elsewhere than those of another (None: its rows are no windows).

    Grace and retention are no part of that.
    """
    return _bounds(one) != _bounds(other)


def _bounds(windows: Windows | None) -> tuple[object, ...]:
    match windows:
        case None:
            return ()
        case TimeWindows():
            return "time", windows.size, windows.advance, windows.offset, windows.timezone
        case SlidingWindows():
            return "sliding", windows.size
        case SessionWindows():
            return "session", windows.gap


def _final(only_final: bool) -> str:
    return ", each once it has closed" if only_final else ""
