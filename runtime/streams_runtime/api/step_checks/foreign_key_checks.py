"""Checks of joins of two tables by a foreign key: the key's expression, whose rows, and the result's store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.known_columns import same_type, shown_type
from streams_runtime.api.flow.per_update_tables import met_again
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.scalars import scalar_problems
from streams_runtime.api.sql.sql_tree import SqlSyntaxError
from streams_runtime.api.step_checks.join_sides import MATERIALIZE, NEVER_THERE, name_mistakes, select_mistakes
from streams_runtime.api.steps.topology_spec import JoinSpec, StepSpec
from streams_runtime.errors import Mistake


def foreign_key_mistakes(
    step: StepSpec, join: JoinSpec, path: str, streams: Mapping[str, Stream], steps: Sequence[StepSpec]
) -> Iterator[Mistake]:
    """What is wrong with a join that has `key` and takes its rows from a table. `steps` are all."""
    field = under(path, "join")
    left, right = streams.get(step.from_ or "", UNKNOWN), streams.get(join.other, UNKNOWN)
    if join.type == "outer":
        found = "an outer join by a foreign key: a row that no other one names has no key in the result"
        yield Mistake(under(field, "type"), found, "use inner or left")
    if step.store is None:
        remedy = f"name the store of what the join gives, such as {step.name!r}"
        yield Mistake(under(path, "store"), "is missing", remedy)
    if right is UNKNOWN:
        return
    wrong = [*_sides(step, join, path, left, right), *_key(join, left, right, under(field, "key"))]
    for name, place in ((step.from_ or "", under(path, "from")), (join.other, under(field, "table"))):
        if again := met_again(name, {each.name: each for each in steps}):
            found = f"a join by a foreign key of {name!r}, in which rows of {' and '.join(again)} meet themselves"
            wrong.append(Mistake(place, f"{found}: {NEVER_THERE}", MATERIALIZE))
    yield from wrong or select_mistakes(left, join, right, field)


def _sides(step: StepSpec, join: JoinSpec, path: str, left: Stream, right: Stream) -> Iterator[Mistake]:
    where = under(path, "join", "table")
    if not right.table:
        found = f"{join.other!r} is a stream, and {step.from_!r} is a table"
        yield Mistake(where, found, "join with a source that is declared with table: {store: …}")
        return
    if right.is_global:
        found = f"a join of two tables of which {join.other!r} is global: no change of a global table is passed on"
        yield Mistake(where, found, "join a stream with it, or declare it without global")
        return
    for name, side, place in ((step.from_, left, under(path, "from")), (join.other, right, where)):
        if side.windowed:
            found = f"a join of two tables of which {name!r} has windows is not there yet"
            yield Mistake(place, found, "make a table of it under another key: toStream, keyBy, toTable")
        elif side.unkeyed:
            found = f"a join of rows without a key: {' and '.join(side.unkeyed)} declares none, or one in a registry"
            yield Mistake(place, found, "declare the source's key")
    yield from name_mistakes(step.from_, left, join, where)


def _key(join: JoinSpec, left: Stream, right: Stream, field: str) -> Iterator[Mistake]:
    """The expression of the foreign key, which has to be of the other table's type of key."""
    text = join.key or ""
    problems = scalar_problems(text, left.visible)
    for problem in problems:
        yield problem.in_field(field)
    if problems or left.visible is None or right.key is None or right.unkeyed:
        return
    try:
        kind = left.visible.type_of(text)
    except SqlSyntaxError:
        return
    if kind is not None and not same_type(kind, right.key):
        found = f"{text!r} is {shown_type(kind)}, and the key of {join.other!r} is {shown_type(right.key)}"
        yield Mistake(field, found, f"give the key's type: cast({text} as {shown_type(right.key)})")
