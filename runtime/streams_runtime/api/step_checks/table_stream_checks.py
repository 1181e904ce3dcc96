"""Checks of steps between streams and tables: toTable, toStream, and what a table is joined with."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.per_update_tables import made_of_their_own, windows_behind
from streams_runtime.api.flow.step_graph import inputs_of_step, is_suppressed
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.step_checks.table_checks import history_length_mistakes
from streams_runtime.api.steps.table_steps_spec import SuppressSpec
from streams_runtime.api.steps.topology_spec import StepSpec
from streams_runtime.errors import Mistake

_LEAST = timedelta(milliseconds=1)


def table_stream_mistakes(
    step: StepSpec, path: str, streams: Mapping[str, Stream], steps: Sequence[StepSpec], patterns: Collection[str]
) -> Iterator[Mistake]:
    """What is wrong with the step where streams become tables, or tables streams. `steps` are all, and `patterns` the
    sources that read several topics.
    """
    if step.to_table is not None:
        yield from _to_table(step, under(path, "toTable"), streams.get(step.from_ or "", UNKNOWN))
    if step.to_stream is not None:
        yield from _to_stream(step, under(path, "toStream"), streams.get(step.from_ or "", UNKNOWN), steps)
    if step.join is not None:
        yield from _joined(step, path, streams, steps, patterns)
    yield from _by_key(step, path, streams)


def _to_table(step: StepSpec, field: str, stream: Stream) -> Iterator[Mistake]:
    if step.to_table is not None and step.to_table.history_retention is not None:
        yield from history_length_mistakes(step.to_table.history_retention, under(field, "historyRetention"))
    if stream.table:
        yield Mistake(field, f"toTable of {step.from_!r}, which is a table", "leave the step out")
        return
    if stream.unkeyed:
        found = f"a table of records without a key: {' and '.join(stream.unkeyed)} declares none, or one in a registry"
        yield Mistake(field, found, "put a keyBy step before it, or declare the source's key")


def _to_stream(step: StepSpec, field: str, stream: Stream, steps: Sequence[StepSpec]) -> Iterator[Mistake]:
    if stream is not UNKNOWN and not stream.table:
        yield Mistake(field, f"toStream of {step.from_!r}, which is a stream", "leave the step out")
    windows = windows_behind(step.from_ or "", steps)
    if is_suppressed(step) and windows is not None and windows.suppress is not None:
        found = f"suppress of {step.from_!r}, windows that have closed, each of which has one change only"
        remedy = f"leave it out, or leave the suppress of {windows.name!r} out"
        yield Mistake(under(field, "suppress"), found, remedy)


def suppress_shape_mistakes(suppress: SuppressSpec, path: str) -> Iterator[Mistake]:
    """What can be said of the suppress at `path` by itself."""
    if suppress.within < _LEAST:
        found = "a time without a length, in which no change waits"
        yield Mistake(under(path, "within"), found, "give at least 1ms, or leave suppress out")
    if suppress.buffer is not None and suppress.buffer.records is None and suppress.buffer.bytes is None:
        found = "a buffer without bounds, which is never full"
        yield Mistake(under(path, "buffer"), found, "give it records, bytes or both, or leave it out")


def _joined(
    step: StepSpec, path: str, streams: Mapping[str, Stream], steps: Sequence[StepSpec], patterns: Collection[str]
) -> Iterator[Mistake]:
    tables = {name for name, stream in streams.items() if stream.table}
    for join, table, changes in made_of_their_own(steps, tables, patterns):
        if join is step:
            found = f"{table!r} is made of {changes!r}, whose records are changes of a table that it is joined with"
            yield Mistake(under(path, "join", "table"), found, f"put a keyBy between {changes!r} and {table!r}")
            return


_BY_KEY = ("aggregate", "join", "dedupe", "toTable", "process")


def _by_key(step: StepSpec, path: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    """Steps that go by key, over a stream of windows: its keys have a time in them, and its records no place."""
    for kind in (kind for kind in step.verbs if kind in _BY_KEY):
        for name in inputs_of_step(step):
            stream = streams.get(name, UNKNOWN)
            if stream.windowed and not stream.table:
                found = f"{kind} of {name!r}, whose keys are windows"
                yield Mistake(under(path, kind), found, "put a keyBy before it; a select before that keeps the times")
