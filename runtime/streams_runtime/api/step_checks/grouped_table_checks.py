"""Checks of aggregates of a table by other groups: whose rows, and what a row can be taken out of again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.per_update_tables import met_again
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.aggregate_calls import parse_aggregate
from streams_runtime.api.sql.python_aggregates import PYTHON
from streams_runtime.api.sql.reduce_aggregates import REDUCE
from streams_runtime.api.sql.scalars import moment_problems, scalar_problems
from streams_runtime.api.sql.sql_tree import SqlSyntaxError
from streams_runtime.api.step_checks.join_sides import MATERIALIZE, NEVER_THERE
from streams_runtime.api.steps.topology_spec import StepSpec
from streams_runtime.errors import Mistake

_SUBTRACTED = ("count", "count_if", "sum", "avg")
_CHOICE = "use count, count_if, sum or avg; or put a step toStream: {} before a keyBy and an aggregate of every change"
_REMEDIES = {
    REDUCE: f"its lambda adds records and takes none out; {_CHOICE}",
    PYTHON: f"its class adds records and takes none out; {_CHOICE}",
}
_LATER = "is another value when the row leaves its group, so that what came in would not be taken out"


def grouping_shape_mistakes(step: StepSpec, path: str) -> Iterator[Mistake]:
    """What can be said of a step with groupBy without looking at others."""
    field = under(path, "groupBy")
    if step.group_by is None:
        return
    if step.aggregate is None:
        yield Mistake(field, "groupBy in a step without an aggregate", "leave it out; a stream's key is given by keyBy")
    elif step.window is not None:
        found = "groupBy beside windows: a row that leaves its group would have to leave them too"
        yield Mistake(field, found, "leave the window out, or give groupBy the window: date_trunc('hour', …)")


def grouped_table_mistakes(
    step: StepSpec, path: str, streams: Mapping[str, Stream], steps: Sequence[StepSpec]
) -> Iterator[Mistake]:
    """What is wrong with an aggregate that has groupBy, by what reaches it. `steps` are all."""
    rows = streams.get(step.from_ or "", UNKNOWN)
    if step.group_by is None or step.aggregate is None or rows is UNKNOWN:
        return
    field = under(path, "groupBy")
    if not rows.table:
        found = f"groupBy of {step.from_!r}, which is a stream: its records leave no group again"
        yield Mistake(field, found, "put a keyBy with this expression before the aggregate")
        return
    if rows.windowed:
        found = f"groupBy of {step.from_!r}, whose rows are windows, is not there yet"
        yield Mistake(field, found, "make a table of it under another key: toStream, keyBy, toTable")
    elif rows.unkeyed:
        found = f"groupBy of rows without a key: {' and '.join(rows.unkeyed)} declares none, or one in a registry"
        yield Mistake(field, found, "declare the source's key")
    if again := met_again(step.from_ or "", {each.name: each for each in steps}):
        found = f"groupBy of {step.from_!r}, in which rows of {' and '.join(again)} meet themselves"
        yield Mistake(field, f"{found}: {NEVER_THERE}, which would be taken out of groups", MATERIALIZE)
    yield from _moments(step.group_by, field)
    for name, text in step.aggregate.items():
        yield from _aggregate(text, under(path, "aggregate", name), step.from_ or "")


def _aggregate(text: str, field: str, table: str) -> Iterator[Mistake]:
    try:
        call = parse_aggregate(text)
    except SqlSyntaxError:
        return  # told where it is read
    if call.function not in _SUBTRACTED:
        found = f"{call.function} of the table {table!r}, out of which a row that leaves its group can't be taken"
        yield Mistake(field, found, _REMEDIES.get(call.function, _CHOICE))
        return
    for each in (call.argument, call.condition):
        if each is not None:
            yield from _moments(each, field)


def _moments(text: str, field: str) -> Iterator[Mistake]:
    for problem in moment_problems(text, _LATER) if not scalar_problems(text, None) else ():
        yield problem.in_field(field)
