"""Checks of windows: of one kind, lengths that they can have, a retention that fits; and joins, of equal bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.per_update_tables import windows_behind
from streams_runtime.api.flow.step_graph import inputs_of_step
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.spec.spec_values import format_duration
from streams_runtime.api.steps.topology_spec import StepSpec
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


def joined_window_mistakes(
    step: StepSpec, path: str, streams: Mapping[str, Stream], steps: Sequence[StepSpec]
) -> Iterator[Mistake]:
    """What is wrong with the windows of both sides of a join of tables; nothing where none has any."""
    names = inputs_of_step(step)
    fields = (under(path, "from"), under(path, "join", "table"))
    sides = [streams.get(name, UNKNOWN) for name in names]
    if not any(side.windowed for side in sides) or not all(side.table for side in sides):
        return
    found = [windows_behind(name, steps) if side.windowed else None for name, side in zip(names, sides, strict=True)]
    left, right = found
    if left is None or right is None:
        one, other = names if right is None else reversed(names)
        text = f"a join of {one!r}, whose rows are windows, and {other!r}, whose rows are none"
        yield Mistake(fields[1], text, f"make a table of {one!r} under another key: toStream, keyBy, toTable")
        return
    for name, field, windows in zip(names, fields, found, strict=True):
        if windows is not None and windows.suppress is not None:
            text = f"a join of two tables of which {name!r} has windows that have closed is not there yet"
            remedy = f"leave the suppress of {windows.name!r} out; changes can wait in a toStream behind the join"
            yield Mistake(field, text, remedy)
    difference = None if left.window is None or right.window is None else _difference(left.window, right.window)
    if difference is not None:
        mine, theirs = difference
        text = f"windows of other bounds: {left.name!r} has {mine}, and {right.name!r} has {theirs}"
        yield Mistake(fields[1], text, "give both the same, or a key by keyBy behind a toStream and join by this")


def _difference(one: WindowSpec, other: WindowSpec) -> tuple[str, str] | None:
    """The fields in which the bounds of two kinds of windows differ, with what stands there."""
    mine, theirs = _bounds(one), _bounds(other)
    if mine.keys() != theirs.keys():
        return _kind(one), _kind(other)
    for name in mine:
        if mine[name][1] != theirs[name][1]:
            shown = [f"{field} {value}" if value else f"no {field}" for field, value in (mine[name], theirs[name])]
            return shown[0], shown[1]
    return None


def _bounds(window: WindowSpec) -> dict[str, tuple[str, str]]:
    """Each part of the bounds as field and value; the advance of tumbling windows is their size."""
    kind = _kind(window)
    if window.session is not None:
        return {"gap": (f"{kind}.gap", format_duration(window.session.gap))}
    if window.sliding is not None:
        return {"difference": (f"{kind}.timeDifference", format_duration(window.sliding.time_difference))}
    lengths = window.tumbling or window.hopping
    assert lengths is not None, "a window is of one kind"
    size = (f"{kind}.size", format_duration(lengths.size))
    hopping = None if window.hopping is None else (f"{kind}.advance", format_duration(window.hopping.advance))
    zone = None if window.tumbling is None else window.tumbling.timezone
    return {
        "size": size,
        "advance": hopping or size,
        "offset": (f"{kind}.offset", format_duration(lengths.offset)),
        "timezone": (f"{kind}.timezone", zone or ""),
    }


def _kind(window: WindowSpec) -> str:
    kinds = ("tumbling", "hopping", "sliding", "session")
    return next(f"window.{each}" for each in kinds if getattr(window, each) is not None)
