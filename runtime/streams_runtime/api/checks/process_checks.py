"""Checks of process steps, without the user's code: references, types of what is forwarded and kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from streams_runtime.api.flow.known_columns import key_format, shown_type, type_named
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.legal_names import part_name_problem
from streams_runtime.api.schemas.ddl_schema import parse_schema
from streams_runtime.api.spec.spec_values import format_duration
from streams_runtime.api.sql.state_types import KEPT, not_kept
from streams_runtime.api.steps.functions_spec import REFERENCE_PATTERN
from streams_runtime.api.steps.process_spec import ProcessorStoreSpec, ProcessorWindowSpec, ProcessSpec
from streams_runtime.errors import Mistake

_REFERENCE = re.compile(REFERENCE_PATTERN)
_KEYS = "give STRING, BIGINT, INT, DOUBLE or BINARY"


def process_shape_mistakes(process: ProcessSpec, path: str) -> Iterator[Mistake]:
    """What can be said of the process step at `path` by itself."""
    if not _REFERENCE.fullmatch(process.python):
        yield Mistake(under(path, "python"), f"found {process.python!r}", "write package.module:Class")
    yield from _columns(process.value, under(path, "value"))
    if process.key is not None:
        yield from _key(process.key, under(path, "key"))
    first: dict[str, str] = {}
    for index, name in enumerate(process.outputs or ()):
        field = under(path, "outputs", index)
        if problem := part_name_problem(name):
            yield Mistake(field, *problem)
        if name in first:
            yield Mistake(field, f"the output {name!r} is there already, {first[name]}", "give it another name")
        first.setdefault(name, field)
    for name, store in process.stores.items():
        yield from _key(store.key, under(path, "stores", name, "key"))
        yield from _columns(store.value, under(path, "stores", name, "value"))
        yield from _windows(store, under(path, "stores", name))


def _columns(ddl: str, path: str) -> Iterator[Mistake]:
    columns, problems = parse_schema(ddl)
    for problem in problems:
        yield problem.in_field(path)
    for column in columns or ():
        kind = None if problems or column.type is None else not_kept(column.type)
        if kind is not None:
            yield Mistake(path, f"the column {column.name!r} has {shown_type(kind)}", f"declare {KEPT}")


def _windows(store: ProcessorStoreSpec, path: str) -> Iterator[Mistake]:
    if store.window is not None:
        yield from _window(store.window, under(path, "window"))
    if store.session is None:
        return
    if store.window is not None:
        found = "sessions in a store that has windows"
        yield Mistake(under(path, "session"), found, "give window or session; the other one takes a store of its own")
    if store.session.retention <= timedelta(0):
        found = f"{format_duration(store.session.retention)}, in which no session is kept"
        yield Mistake(under(path, "session", "retention"), found, "give at least 1ms")


def _window(window: ProcessorWindowSpec, path: str) -> Iterator[Mistake]:
    if window.size <= timedelta(0):
        yield Mistake(under(path, "size"), "windows without a length", "give at least 1ms")
    elif window.retention < window.size:
        found = f"{format_duration(window.retention)}, in which a window does not come to its end"
        yield Mistake(under(path, "retention"), found, f"give at least its size, {format_duration(window.size)}")


def _key(ddl: str, path: str) -> Iterator[Mistake]:
    columns, problems = parse_schema(f"x {ddl}")
    if columns is None or problems or len(columns.names) != 1:
        yield Mistake(path, f"{ddl!r} is no type", _KEYS)
    elif (kind := columns.all[0].type) is None or key_format(kind) in (None, "json"):
        yield Mistake(path, f"keys of the type {shown_type(kind or type_named('STRING'))}", _KEYS)
