"""The nodes of the plan that make tables, and streams of tables."""

from __future__ import annotations

from dataclasses import dataclass

from streams_runtime.api.steps.topology_spec import JoinType


@dataclass(frozen=True, slots=True)
class TableJoinNode:
    """The table `input` beside the table `table`, row by row of one key; its output is a table.

    A change of either gives the result's new row. A key has a row where both tables have one (`inner`), where `input`
    has one (`left`), or where any has (`outer`). `select` holds (column, expression) in order: columns that are added
    to those of `input`, or replace them.
    """

    name: str
    input: str
    table: str
    type: JoinType
    select: tuple[tuple[str, str], ...]
    path: str


@dataclass(frozen=True, slots=True)
class ToTableNode:
    """The last value of each key of the stream `input`, kept in `store`; its output is a table."""

    name: str
    input: str
    store: str
    path: str


@dataclass(frozen=True, slots=True)
class ToStreamNode:
    """The changes of the table `input`, as records; its output is a stream."""

    name: str
    input: str
    path: str
