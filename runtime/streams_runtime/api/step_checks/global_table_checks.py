"""Checks of global tables: what may follow them, and joins of streams with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.known_columns import key_format, same_type, shown_type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.scalars import scalar_problems
from streams_runtime.api.step_checks.join_sides import name_mistakes
from streams_runtime.api.steps.topology_spec import JoinSpec, SinkSpec, StepSpec
from streams_runtime.errors import Mistake


def global_input_mistakes(node: StepSpec | SinkSpec, path: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    """Global tables that a step or a sink takes its records from: their changes are passed on to nobody."""
    names: list[tuple[tuple[object, ...], str]] = [] if node.from_ is None else [(("from",), node.from_)]
    if isinstance(node, StepSpec):
        names += [(("merge", index), name) for index, name in enumerate(node.merge or ())]
    for tokens, name in names:
        if streams.get(name, UNKNOWN).is_global:
            found = f"{name!r} is a global table, which is only there to be looked up in and passes nothing on"
            remedy = f"join a stream with it (join: {{table: {name}, key: …}}), or declare it without global"
            yield Mistake(under(path, *tokens), found, remedy)


def on_mistakes(step: StepSpec, path: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    """`key` in a join of a stream with a table that is not global, whose partitions lie where the records' keys are."""
    join, stream = step.join, streams.get(step.from_ or "", UNKNOWN)
    if join is None or join.key is None or join.table is None or stream is UNKNOWN or stream.table:
        return
    if step.store is not None:
        found = "a store of what a join of a stream gives, which keeps nothing"
        yield Mistake(under(path, "store"), found, "leave it out")
    other = streams.get(join.other, UNKNOWN)
    if other.is_global or other is UNKNOWN:
        return
    found = f"an expression to look up in the table {join.other!r}, which is joined by the key"
    remedy = "put a keyBy before the join and leave key out"
    if other.table and not other.aggregated:
        remedy += ", or declare the table with global: true"
    yield Mistake(under(path, "join", "key"), found, remedy)


def global_join_mistakes(
    step: StepSpec, join: JoinSpec, field: str, stream: Stream, table: Stream
) -> Iterator[Mistake]:
    """What is wrong with the two sides of a stream's join with a global table; `field` is the join."""
    where, on = under(field, "table"), under(field, "key")
    yield from name_mistakes(step.from_, stream, join, where)
    if table.unkeyed:
        found = f"a join with rows without a key: {' and '.join(table.unkeyed)} declares none, or one in a registry"
        yield Mistake(where, found, "declare the source's key")
    if join.key is None:
        found = f"is missing; {join.other!r} is a global table"
        yield Mistake(on, found, "give the expression whose value is looked up in it, such as the name of a column")
        return
    problems = scalar_problems(join.key, stream.visible)
    for problem in problems:
        yield problem.in_field(on)
    kind = None if problems or stream.visible is None else stream.visible.type_of(join.key)
    if kind is None:
        return
    if key_format(kind) is None:
        found = f"{join.key!r} is {shown_type(kind)}, for which keys have no format"
        yield Mistake(on, found, "cast it to STRING, BIGINT, INT or DOUBLE")
    elif table.key is not None and not table.unkeyed and not same_type(kind, table.key):
        found = f"{join.key!r} is {shown_type(kind)}, the key of {join.other!r} {shown_type(table.key)}"
        yield Mistake(on, found, "give the table's type: cast(… as …)")
