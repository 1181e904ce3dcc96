"""Checks of merges of windows: which of them have a turn, and keys that a topic can hold side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.per_update_tables import windows_behind
from streams_runtime.api.flow.step_graph import inputs_of_step, outputs_of_step, stage_before
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.spec.spec_values import format_duration
from streams_runtime.api.steps.topology_spec import StepSpec
from streams_runtime.api.steps.windows_spec import WindowSpec
from streams_runtime.errors import Mistake


def merge_mistakes(
    step: StepSpec, path: str, streams: Mapping[str, Stream], steps: Sequence[StepSpec]
) -> Iterator[Mistake]:
    """Inputs of a merge that are windows which have closed: nobody knows by which record, and so when their turn is.

    And such as have other keys than the first one: windows beside records, sessions, or windows of another size, whose
    start and key may be the same.
    """
    wrong = False
    for index, name in enumerate(step.merge or ()):
        before = stage_before(name, steps, lambda each: _of_closed_windows(each, steps))
        if before is not None:
            found = f"a merge of what the toStream {before.name!r} gives, windows that have closed, is not there yet"
            remedy = "put a keyBy between them that an aggregate or a join follows, or leave suppress out"
            yield Mistake(under(path, "merge", index), found, remedy)
            wrong = True
    if not wrong:
        yield from _other_keys(step, path, streams, steps)


def _other_keys(
    step: StepSpec, path: str, streams: Mapping[str, Stream], steps: Sequence[StepSpec]
) -> Iterator[Mistake]:
    names = step.merge or []
    # That a table can't be merged at all is told elsewhere.
    known = [(index, name) for index, name in enumerate(names) if _is_stream(streams.get(name, UNKNOWN))]
    kinds = {name: _kind_of(name, streams, steps) for _, name in known}
    for index, name in known[1:]:
        first = known[0][1]
        if kinds[name] != kinds[first]:
            found = f"a merge of {first!r}, whose keys are {kinds[first]}, and {name!r}, whose keys are {kinds[name]}"
            yield Mistake(under(path, "merge", index), found, "give both keys of one kind by a keyBy before the merge")


def _is_stream(stream: Stream) -> bool:
    return stream is not UNKNOWN and not stream.table


def _kind_of(name: str, streams: Mapping[str, Stream], steps: Sequence[StepSpec]) -> str:
    """What the keys of a stream are."""
    if not streams[name].windowed:
        return "no windows"
    owners = {output: each for each in steps for output in outputs_of_step(each)}
    here = owners[name]
    while here.to_stream is None:
        here = owners[inputs_of_step(here)[0]]  # of merges all inputs are of one kind
    windows = windows_behind(here.from_ or "", steps)
    window = None if windows is None else windows.window
    size = None if window is None else _size_of(window)
    zone = window.tumbling.timezone if window is not None and window.tumbling is not None else None
    clock = "" if zone is None else f" by the clock of {zone}"
    return "sessions" if size is None else f"windows of {format_duration(size)}{clock}"


def _size_of(window: WindowSpec) -> timedelta | None:
    """How long a window is; None: it is a session."""
    if window.sliding is not None:
        return window.sliding.time_difference
    lengths = window.tumbling or window.hopping
    return None if lengths is None else lengths.size


def _of_closed_windows(step: StepSpec, steps: Sequence[StepSpec]) -> bool:
    windows = windows_behind(step.from_ or "", steps) if step.to_stream is not None else None
    return windows is not None and windows.suppress is not None
