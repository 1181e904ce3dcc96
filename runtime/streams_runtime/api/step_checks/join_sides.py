"""What the checks of every join ask of its two sides: of one key, told apart by their names, and what is selected."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.flow.flows import Stream, seen_by_join
from streams_runtime.api.flow.known_columns import shown_type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.scalars import scalar_problems
from streams_runtime.api.steps.topology_spec import JoinSpec
from streams_runtime.errors import Mistake

NEVER_THERE = "of one change it passes on old rows that were never there"
MATERIALIZE = "put toStream: {} and toTable: {store: …} behind it, and take that table"


def name_mistakes(name: str | None, left: Stream, join: JoinSpec, field: str) -> Iterator[Mistake]:
    """A column of the left side that is called as the right side is. `name` is the left side's own."""
    if left.columns is not None and left.columns.get(join.other) is not None:
        kind = "table" if join.table is not None else "stream"
        found = f"{name!r} has a column called {join.other!r}, as the {kind} is"
        yield Mistake(field, found, f"give the column or the {kind} another name")


def key_mistakes(
    name: str | None, left: Stream, join: JoinSpec, right: Stream, field: str, remedy: str
) -> Iterator[Mistake]:
    """Keys of two types; nothing while either is not known, or not declared, which is told elsewhere."""
    if left.key is None or right.key is None or left.unkeyed or right.unkeyed:
        return
    mine, theirs = shown_type(left.key), shown_type(right.key)
    if mine != theirs:
        yield Mistake(field, f"the key of {name!r} is {mine}, that of {join.other!r} {theirs}", remedy)


def select_mistakes(left: Stream, join: JoinSpec, right: Stream, path: str) -> Iterator[Mistake]:
    """What is wrong with the expressions over both sides. `path` is the join's."""
    seen = seen_by_join(left, join.other, right)
    for name, text in join.select.items():
        for problem in scalar_problems(text, seen):
            yield problem.in_field(under(path, "select", name))
