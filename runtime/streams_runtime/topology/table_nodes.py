"""The node of the plan that makes one table of two."""

from __future__ import annotations

from dataclasses import dataclass

from streams_runtime.api.topology_spec import JoinType


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
