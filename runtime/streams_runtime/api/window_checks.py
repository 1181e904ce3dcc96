"""Checks of a step's windows: one kind, lengths that windows can have, a retention that they fit into."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from streams_runtime.api.paths import under
from streams_runtime.api.values import format_duration
from streams_runtime.api.windows_spec import HoppingSpec, TumblingSpec, WindowSpec
from streams_runtime.errors import Mistake

_NOTHING = timedelta(0)


def window_mistakes(window: WindowSpec, path: str, aggregated: bool) -> Iterator[Mistake]:
    """What is wrong with the windows at `path`; `aggregated`: whether the step aggregates."""
    if not aggregated:
        yield Mistake(path, "windows for a step that aggregates nothing", "leave it out, or add an aggregate")
    kinds = {name: kind for name, kind in (("tumbling", window.tumbling), ("hopping", window.hopping)) if kind}
    if len(kinds) != 1:
        found = " and ".join(kinds) or "no kind of window"
        yield Mistake(path, f"found {found}", "give one: tumbling or hopping")
    for name, kind in kinds.items():
        yield from _lengths(kind, under(path, name))
        if window.retention is not None and window.retention < kind.size + kind.grace:
            least = format_duration(kind.size + kind.grace)
            yield Mistake(
                under(path, "retention"),
                f"{format_duration(window.retention)}, in which a window of this size and grace does not come to its"
                " end",
                f"give at least {least}, or leave it out",
            )


def _lengths(kind: TumblingSpec | HoppingSpec, path: str) -> Iterator[Mistake]:
    if kind.size <= _NOTHING:
        yield Mistake(under(path, "size"), "windows without a length", "give at least 1ms")
    if not isinstance(kind, HoppingSpec):
        return
    if kind.advance <= _NOTHING:
        yield Mistake(under(path, "advance"), "windows that never advance", "give at least 1ms")
    if kind.advance > kind.size:
        found = f"{format_duration(kind.advance)} is longer than the windows, so that records fall between them"
        yield Mistake(under(path, "advance"), found, f"give at most the size, {format_duration(kind.size)}")
