"""The windows that an aggregate divides a key's records by."""

from __future__ import annotations

from dataclasses import dataclass


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

    @property
    def lengths(self) -> str:
        """How long the windows are and where they begin, in a user's words."""
        every = "" if self.advance == self.size else f" every {self.advance} ms"
        return f"{self.size} ms{every}" + (f" with an offset of {self.offset} ms" if self.offset else "")

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


def _final(only_final: bool) -> str:
    return ", each once it has closed" if only_final else ""
