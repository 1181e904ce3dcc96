"""Checks of joins of two streams: which sides there may be, how close they lie, and what is not there yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.step_checks.join_sides import key_mistakes, name_mistakes, select_mistakes
from streams_runtime.api.steps.topology_spec import JoinSpec, StepSpec
from streams_runtime.errors import Mistake

_NOTHING = timedelta(0)


def join_shape_mistakes(join: JoinSpec, path: str) -> Iterator[Mistake]:
    """What can be said of the join at `path` by itself."""
    if (join.table is None) == (join.stream is None):
        found = "neither table nor stream" if join.table is None else "table and stream in one join"
        yield Mistake(path, found, "name what the records are joined with: a table, or a stream")
    if join.stream is None:
        for name, value in (("within", join.within), ("grace", join.grace)):
            if value is not None:
                found = "times for a join with a table, which is as it is when a record comes"
                yield Mistake(under(path, name), found, "leave it out; streams are joined within a time")
        return
    if join.key is not None:
        found = "a key of its own for a join of two streams, which lie together by their keys"
        yield Mistake(under(path, "key"), found, "leave it out, and put a keyBy before each side that needs one")
    if join.within is None:
        remedy = "say how far apart the records of the two streams may lie, such as 5m"
        yield Mistake(under(path, "within"), "is missing", remedy)
    elif join.within.before + join.within.after + (join.grace or _NOTHING) <= _NOTHING:
        found = "a window without a length and without grace, in which no record is kept for another"
        yield Mistake(under(path, "within"), found, "give at least 1ms, or a grace")


def stream_join_mistakes(step: StepSpec, path: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    """What is wrong with the join of a step with a stream; nothing for another step."""
    join = step.join
    if join is None or join.stream is None or join.table is not None:
        return
    field = under(path, "join")
    left, right = streams.get(step.from_ or "", UNKNOWN), streams.get(join.stream, UNKNOWN)
    sides = ((under(path, "from"), step.from_ or "", left), (under(field, "stream"), join.stream, right))
    wrong = [mistake for place in sides for mistake in _side(*place)]
    wrong += name_mistakes(step.from_, left, join, under(field, "stream"))
    if not left.table and not right.table:
        remedy = "put a keyBy before the join that gives both one type: cast(… as …)"
        wrong += key_mistakes(step.from_, left, join, right, under(field, "stream"), remedy)
    yield from wrong
    if not wrong and right is not UNKNOWN:
        yield from select_mistakes(replace(left, aggregated=True), join, right, field)


def _side(field: str, name: str, stream: Stream) -> Iterator[Mistake]:
    if stream.table:
        found = f"{name!r} is a table, and a table is not joined within a time"
        yield Mistake(field, found, "join two streams, or the stream with the table: join: {table: …}")
        return
    if stream.unkeyed:
        found = f"a join of records without a key: {' and '.join(stream.unkeyed)} declares none, or one in a registry"
        yield Mistake(field, found, "declare the source's key, or put a keyBy step before the join")
