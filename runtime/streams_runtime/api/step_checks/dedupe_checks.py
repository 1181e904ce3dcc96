"""Checks of dedupe steps: what their ids are made of, and where there are none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from streams_runtime.api.flow.flows import Stream
from streams_runtime.api.flow.known_columns import Columns, key_format, shown_type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.scalars import moment_problems, scalar_problems
from streams_runtime.api.sql.sql_tree import SqlSyntaxError
from streams_runtime.api.steps.stream_steps_spec import DedupeSpec
from streams_runtime.api.steps.topology_spec import StepSpec
from streams_runtime.errors import Mistake

_ANOTHER_ID = "gives another id each time, so that a record that is read again would not be known"


_LEAST = timedelta(milliseconds=1)


def dedupe_shape_mistakes(dedupe: DedupeSpec, path: str) -> Iterator[Mistake]:
    """What can be said of the dedupe at `path` by itself."""
    if dedupe.within < _LEAST:
        found = "a time without a length, in which no record has a duplicate but those of its very moment"
        yield Mistake(under(path, "within"), found, "give at least 1ms")


def dedupe_mistakes(step: StepSpec, path: str, stream: Stream) -> Iterator[Mistake]:
    """What is wrong with the ids of a dedupe step of this stream; nothing for another step."""
    if step.dedupe is None or stream.table:
        return
    if step.dedupe.by is not None:
        yield from _by(step.dedupe.by, under(path, "dedupe", "by"), stream.visible)
    elif stream.unkeyed:
        found = f"a dedupe of records without a key: {' and '.join(stream.unkeyed)} declares none, or one in a registry"
        remedy = "declare the source's key, put a keyBy step before the dedupe, or name another id: by"
        yield Mistake(under(path, "dedupe"), found, remedy)


def _by(text: str, field: str, visible: Columns | None) -> Iterator[Mistake]:
    problems = scalar_problems(text, visible)
    problems += () if problems else moment_problems(text, _ANOTHER_ID)
    for problem in problems:
        yield problem.in_field(field)
    try:
        kind = visible.type_of(text) if visible is not None else None
    except SqlSyntaxError:
        return
    if kind is not None and key_format(kind) is None:
        found = f"{text!r} is {shown_type(kind)}, which no key has, and no id"
        yield Mistake(field, found, "cast it to STRING, BIGINT, INT or DOUBLE")
