"""Windows, as `windowed_by` takes them; lengths of time are texts such as 1h30m, or timedeltas."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

Time = str | timedelta


@dataclass(frozen=True, slots=True)
class Windows:
    """One kind of windows with its settings, as `tumbling`, `hopping`, `sliding` and `session` make it."""

    kind: str
    fields: dict[str, Time | None]


def tumbling(size: Time, grace: Time | None = None, offset: Time | None = None, timezone: str | None = None) -> Windows:
    """Windows of one `size`, one after the other, aligned to 1970 (TimeWindows without an advance).

    `grace` is how long after its end, in stream time, a window still takes records; None: not at all. `offset`, less
    than the size, is how long after a multiple of the size since 1970 (UTC) a window begins; None: at the multiple.
    With a `timezone` (a name of the IANA's database) size, in whole days, and offset go by its clock.
    """
    return Windows("tumbling", {"size": size, "grace": grace, "offset": offset, "timezone": timezone})


def hopping(size: Time, advance: Time, grace: Time | None = None, offset: Time | None = None) -> Windows:
    """Windows of one `size` that begin at every `advance`, at most the size (TimeWindows#advanceBy): they overlap.

    `grace` and `offset` are as in `tumbling`; the offset is less than the advance.
    """
    return Windows("hopping", {"size": size, "advance": advance, "grace": grace, "offset": offset})


def sliding(time_difference: Time, grace: Time | None = None) -> Windows:
    """Windows around the records themselves, `time_difference` long, both ends included (SlidingWindows).

    `grace` is how long after its end, in stream time, a window still takes records; None: not at all.
    """
    return Windows("sliding", {"timeDifference": time_difference, "grace": grace})


def session(gap: Time, grace: Time | None = None) -> Windows:
    """Windows of a key's records between which no time longer than `gap` passes (SessionWindows).

    `grace` is how long after the gap, in stream time, a session still takes records; None: not at all.
    """
    return Windows("session", {"gap": gap, "grace": grace})
