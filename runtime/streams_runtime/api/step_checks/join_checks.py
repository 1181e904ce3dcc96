"""Checks of joins: what is joined, by which key, what the expressions name, and what becomes of the result."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.step_graph import is_kept
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.step_checks.foreign_key_checks import foreign_key_mistakes
from streams_runtime.api.step_checks.global_table_checks import global_join_mistakes
from streams_runtime.api.step_checks.join_sides import key_mistakes, name_mistakes, select_mistakes
from streams_runtime.api.step_checks.table_checks import table_join_mistakes
from streams_runtime.api.steps.topology_spec import JoinSpec, StepSpec
from streams_runtime.errors import Mistake


def join_mistakes(
    step: StepSpec,
    path: str,
    streams: Mapping[str, Stream],
    sources: Collection[str | None],
    steps: Sequence[StepSpec],
) -> Iterator[Mistake]:
    """What is wrong with the join of a step; nothing for a step without one. `sources` are the sources' names."""
    join = step.join
    if join is None or join.table is None:
        return
    field = under(path, "join")
    stream, table = streams.get(step.from_ or "", UNKNOWN), streams.get(join.table, UNKNOWN)
    if stream.table and join.key is not None:
        yield from foreign_key_mistakes(step, join, path, streams, steps)
        return
    if stream.table:
        yield from table_join_mistakes(step, join, path, streams, steps)
        return
    if table is UNKNOWN:
        return
    if join.type == "outer":
        found = f"an outer join of the stream {step.from_!r} with a table: a change of the table alone makes no record"
        yield Mistake(under(field, "type"), found, "use inner or left, or read both topics as tables")
    if table.is_global:
        wrong = list(global_join_mistakes(step, join, field, stream, table))
    else:
        kept = {each.name for each in steps if is_kept(each)}
        wrong = list(_sides(step, join, field, stream, table, join.table in sources or join.table in kept))
    yield from wrong or select_mistakes(stream, join, table, field)


def _sides(
    step: StepSpec, join: JoinSpec, field: str, stream: Stream, table: Stream, is_kept: bool
) -> Iterator[Mistake]:
    where = under(field, "table")
    if not table.table:
        remedy = "declare the source with table: {store: …}, or make a table of the stream by a step toTable"
        yield Mistake(where, f"{join.other!r} is a stream", remedy)
        return
    if not is_kept:
        found = f"a join with the step {join.other!r}, whose rows no store keeps, is not there yet"
        remedy = (
            "join with a table that is kept: a source's, or one of toTable, aggregate or a join by a foreign key. To"
            " keep this one, put toStream: {} and toTable: {store: …} behind it"
        )
        yield Mistake(where, found, remedy)
        return
    if table.windowed:
        found = f"a join with {join.other!r}, whose rows are windows, is not there yet"
        remedy = "make a table of it under another key: toStream, keyBy, toTable"
        yield Mistake(where, found, remedy)
        return
    yield from name_mistakes(step.from_, stream, join, where)
    for side in (stream, table):
        if side.unkeyed:
            found = f"a join of records without a key: {' and '.join(side.unkeyed)} declares none, or one in a registry"
            remedy = "declare the source's key" + ("" if side.table else ", or put a keyBy step before the join")
            yield Mistake(where if side.table else field, found, remedy)
    remedy = "put a keyBy before the join that gives the table's type: cast(… as …)"
    yield from key_mistakes(step.from_, stream, join, table, where, remedy)
