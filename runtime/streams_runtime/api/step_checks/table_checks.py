"""Checks of tables as inputs of steps: what is joined with what, and expressions that are asked again of old rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.per_update_tables import path_counts, per_update_aggregates, roots_of
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.scalars import moment_problems, scalar_problems
from streams_runtime.api.step_checks.join_sides import MATERIALIZE, key_mistakes, name_mistakes, select_mistakes
from streams_runtime.api.step_checks.window_checks import joined_window_mistakes
from streams_runtime.api.steps.topology_spec import JoinSpec, SinkSpec, SourceSpec, StepSpec
from streams_runtime.errors import Mistake

_LEAST_HISTORY = timedelta(milliseconds=1)
_MOST_PATHS = 64
"""Of each batch a table has as many rows as changes on all paths, and for each path a column of each row."""
_LATER = "is another value when the row changes, so that what was passed on before would not be known again"


def table_step_mistakes(
    step: StepSpec, path: str, streams: Mapping[str, Stream], steps: Sequence[StepSpec]
) -> Iterator[Mistake]:
    """Expressions of where, select and join over a table that would give old rows another value.

    Of an aggregate old rows are only asked for where its every change is told.
    """
    rows = streams.get(step.from_ or "", UNKNOWN)
    if not rows.table:
        return
    if rows.aggregated:
        per_update = per_update_aggregates(steps, {name for name, stream in streams.items() if stream.table})
        if not per_update & roots_of(step.from_ or "", {each.name: each for each in steps}):
            return
    fields = [(under(path, "where"), step.where)] if step.where is not None else []
    fields += [(under(path, "select", name), text) for name, text in step.selected.items()]
    joined = {} if step.join is None else step.join.select
    fields += [(under(path, "join", "select", name), text) for name, text in joined.items()]
    if step.join is not None and step.join.key is not None:
        fields.append((under(path, "join", "key"), step.join.key))
    for field, text in fields:
        for problem in moment_problems(text, _LATER) if not scalar_problems(text, None) else ():
            yield problem.in_field(field)


def table_source_mistakes(source: SourceSpec, path: str) -> Iterator[Mistake]:
    """A time of a table's rows that would be another one when it is asked for again."""
    if source.table is not None and source.timestamp is not None and not scalar_problems(source.timestamp, None):
        for problem in moment_problems(source.timestamp, _LATER):
            yield problem.in_field(under(path, "timestamp"))


def history_source_mistakes(source: SourceSpec, path: str) -> Iterator[Mistake]:
    """What does not go together with the history of a source's table."""
    table, field = source.table, under(path, "table", "historyRetention")
    if table is None or table.history_retention is None:
        return
    yield from history_length_mistakes(table.history_retention, field)
    if table.global_:
        found = "a history of a global table, with whose changes the records of streams have no order"
        yield Mistake(field, found, "leave it out, or leave global out and join by the key")
    if source.timestamp is not None:
        found = "a history by the times of an expression, which the topic does not have when the store is restored"
        remedy = "leave timestamp out, or read a stream with it, and put a toTable with historyRetention behind it"
        yield Mistake(field, found, remedy)


def history_length_mistakes(retention: timedelta, field: str) -> Iterator[Mistake]:
    """A history without a length."""
    if retention < _LEAST_HISTORY:
        yield Mistake(field, "a history without a length", "give at least 1ms, or leave it out")


def history_input_mistakes(node: StepSpec | SinkSpec, path: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    """Tables with a history that a step or a sink takes its rows from, or joins another table with."""
    names: list[tuple[tuple[object, ...], str]] = [] if node.from_ is None else [(("from",), node.from_)]
    if isinstance(node, StepSpec):
        names += [(("merge", index), name) for index, name in enumerate(node.merge or ())]
        if node.join is not None and streams.get(node.from_ or "", UNKNOWN).table:
            names.append((("join", "table"), node.join.other))
    for tokens, name in names:
        if streams.get(name, UNKNOWN).has_history:
            found = f"{name!r} is a table with a history, which is only there for joins of streams and for queries"
            remedy = f"join a stream with it (join: {{table: {name}, …}}), or declare it without historyRetention"
            yield Mistake(under(path, *tokens), found, remedy)


def table_join_mistakes(
    step: StepSpec, join: JoinSpec, path: str, streams: Mapping[str, Stream], steps: Sequence[StepSpec]
) -> Iterator[Mistake]:
    """What is wrong with the join of a step that takes its rows from a table."""
    field = under(path, "join")
    left, right = streams.get(step.from_ or "", UNKNOWN), streams.get(join.other, UNKNOWN)
    if right is UNKNOWN:
        return
    wrong = [
        *_sides(step, join, path, left, right),
        *joined_window_mistakes(step, path, streams, steps),
        *_paths(step, field, steps),
    ]
    yield from wrong or select_mistakes(left, join, right, field)


def _sides(step: StepSpec, join: JoinSpec, path: str, left: Stream, right: Stream) -> Iterator[Mistake]:
    from_, where = under(path, "from"), under(path, "join", "table")
    if not right.table:
        found = f"{join.other!r} is a stream, and {step.from_!r} is a table"
        yield Mistake(
            where, found, f"join the stream with the table: from: {join.other}, join: {{table: {step.from_}}}"
        )
        return
    for name, side, place in ((step.from_, left, from_), (join.other, right, where)):
        if side.is_global:
            found = f"a join of two tables of which {name!r} is global: no change of a global table is passed on"
            yield Mistake(place, found, "join a stream with it, or declare it without global")
        elif side.unkeyed:
            found = f"a join of rows without a key: {' and '.join(side.unkeyed)} declares none, or one in a registry"
            yield Mistake(place, found, "declare the source's key")
    yield from name_mistakes(step.from_, left, join, where)
    yield from key_mistakes(step.from_, left, join, right, where, "join tables whose topics have keys of one type")


def _paths(step: StepSpec, field: str, steps: Sequence[StepSpec]) -> Iterator[Mistake]:
    """Joins of a table with itself, and of what comes of that with itself again, as often as doubles each time."""
    for root, paths in path_counts(step.name, {each.name: each for each in steps}).items():
        if paths > _MOST_PATHS:
            found = f"each change of {root} would come to {step.name!r} by {paths} paths, more than {_MOST_PATHS}"
            yield Mistake(under(field, "table"), found, MATERIALIZE.replace("it", f"{step.from_!r}", 1))
