"""Checks of a step's windows: one kind, lengths that windows can have, a retention that they fit into."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.spec.spec_values import format_duration
from streams_runtime.api.steps.windows_spec import HoppingSpec, SessionSpec, SlidingSpec, TumblingSpec, WindowSpec
from streams_runtime.errors import Mistake
from streams_runtime.time_zones.day_calendar import calendar_of
from streams_runtime.time_zones.zone_file import zone_names

_NOTHING = timedelta(0)
_NAMES = "tumbling, hopping, sliding or session"
_DAY = timedelta(days=1)
_FIXED = re.compile(r"(UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?", re.IGNORECASE)
_Kind = TumblingSpec | HoppingSpec | SlidingSpec | SessionSpec


def window_mistakes(window: WindowSpec, path: str, aggregated: bool) -> Iterator[Mistake]:
    """What is wrong with the windows at `path`; `aggregated`: whether the step aggregates."""
    if not aggregated:
        yield Mistake(path, "windows for a step that aggregates nothing", "leave it out, or add an aggregate")
    all_kinds: dict[str, _Kind | None] = {
        "tumbling": window.tumbling,
        "hopping": window.hopping,
        "sliding": window.sliding,
        "session": window.session,
    }
    kinds = {name: kind for name, kind in all_kinds.items() if kind}
    if len(kinds) != 1:
        found = " and ".join(kinds) or "no kind of window"
        yield Mistake(path, f"found {found}", f"give one: {_NAMES}")
    for name, kind in kinds.items():
        yield from _lengths(kind, under(path, name))
        needed = _least_kept(kind)
        if window.retention is not None and window.retention < needed:
            least = format_duration(needed)
            yield Mistake(
                under(path, "retention"),
                f"{format_duration(window.retention)}, in which a window of this length and grace does not come to its"
                " end",
                f"give at least {least}, or leave it out",
            )


def _least_kept(kind: _Kind) -> timedelta:
    """The shortest retention; a sliding window may be needed until no other can be made of it."""
    match kind:
        case SessionSpec():
            return kind.gap + kind.grace
        case SlidingSpec():
            return 2 * kind.time_difference + kind.grace
        case TumblingSpec(timezone=str() as zone) if not list(_clock(kind, "")):
            every, offset = (length // timedelta(milliseconds=1) for length in (kind.size, kind.offset))
            return timedelta(milliseconds=calendar_of(zone, every, offset).longest) + kind.grace
        case _:
            return kind.size + kind.grace


def _lengths(kind: _Kind, path: str) -> Iterator[Mistake]:
    if isinstance(kind, SlidingSpec):
        if kind.time_difference <= _NOTHING:
            yield Mistake(under(path, "timeDifference"), "windows without a length", "give at least 1ms")
        return
    if isinstance(kind, SessionSpec):
        if kind.gap <= _NOTHING:
            yield Mistake(under(path, "gap"), "sessions that no second record can reach", "give at least 1ms")
        return
    if kind.size <= _NOTHING:
        yield Mistake(under(path, "size"), "windows without a length", "give at least 1ms")
    if isinstance(kind, TumblingSpec):
        yield from _clock(kind, path)
    every = kind.advance if isinstance(kind, HoppingSpec) else kind.size
    if kind.offset >= every > _NOTHING:
        found = f"{format_duration(kind.offset)}, when a window begins every {format_duration(every)}"
        yield Mistake(
            under(path, "offset"), found, f"give {format_duration(kind.offset % every)}, which begins the same windows"
        )
    if not isinstance(kind, HoppingSpec):
        return
    if kind.advance <= _NOTHING:
        yield Mistake(under(path, "advance"), "windows that never advance", "give at least 1ms")
    if kind.advance > kind.size:
        found = f"{format_duration(kind.advance)} is longer than the windows, so that records fall between them"
        yield Mistake(under(path, "advance"), found, f"give at most the size, {format_duration(kind.size)}")


def _clock(kind: TumblingSpec, path: str) -> Iterator[Mistake]:
    """A time zone that nobody knows, and windows that its clock does not divide time into."""
    zone = kind.timezone
    if zone is None:
        return
    if fixed := _FIXED.fullmatch(zone):
        found = f"{zone!r}, which is no place's clock: no change of clocks, and so no use of a time zone"
        yield Mistake(under(path, "timezone"), found, _instead_of_fixed(kind, fixed))
    elif zone not in zone_names():
        found = f"{zone!r}, which is no time zone of the IANA's database"
        yield Mistake(under(path, "timezone"), found, _near(zone))
    if kind.size > _NOTHING and kind.size % _DAY:
        found = (
            f"{format_duration(kind.size)} by the clock of a time zone, which only divides time into days: where it is"
            " set, an hour is left out or comes twice"
        )
        yield Mistake(under(path, "size"), found, "give whole days, such as 1d or 7d, or leave timezone out")


def _near(zone: str) -> str:
    # Whoever gives an abbreviation means no other one.
    near = suggestion(zone.replace(" ", "_"), sorted(name for name in zone_names() if "/" in name or name == "UTC"))
    return near if near.startswith("did you mean") else "give a name such as Europe/Berlin or America/New_York"


def _instead_of_fixed(kind: TumblingSpec, fixed: re.Match[str]) -> str:
    ahead = timedelta(hours=int(fixed[3]), minutes=int(fixed[4] or 0))
    offset = (kind.offset + (-ahead if fixed[2] == "+" else ahead)) % max(kind.size, _DAY)
    return f"leave timezone out and give offset: {format_duration(offset)}, or a place such as Europe/Berlin"
