"""The nodes of the plan that make tables, and streams of tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streams_runtime.api.steps.topology_spec import JoinType
from streams_runtime.topology.nodes.plan_node import StepNode, columns_of, with_history
from streams_runtime.topology.store_specs import StoreSpec


@dataclass(frozen=True, slots=True)
class TableJoinNode(StepNode):
    """The table `input` beside the table `table`, row by row of one key; its output is a table.

    A change of either gives the result's new row. A key has a row where both tables have one (`inner`), where `input`
    has one (`left`), or where any has (`outer`). `select` holds (column, expression) in order: columns that are added
    to those of `input`, or replace them.
    """

    KIND: ClassVar[str] = "table-join"
    MAKES_TABLE: ClassVar[bool] = True

    table: str
    type: JoinType
    select: tuple[tuple[str, str], ...]
    path: str

    @property
    def summary(self) -> str:
        """The join in a user's words."""
        return f"{self.type} join of tables with {self.table}: {columns_of(self.select)}"

    @property
    def inputs(self) -> tuple[str, ...]:
        """Both tables."""
        return (self.input, self.table)


@dataclass(frozen=True, slots=True)
class ToTableNode(StepNode):
    """The last value of each key of the stream `input`, kept in `store`; its output is a table.

    `history`: for how long (ms) the store keeps what each key had; None: the last value alone.
    """

    KIND: ClassVar[str] = "to-table"
    LEADS_OUT: ClassVar[bool] = True
    MAKES_TABLE: ClassVar[bool] = True

    store: str
    path: str
    history: int | None = None

    @property
    def summary(self) -> str:
        """The step in a user's words."""
        return f"to a table{with_history(self.history)}"

    def store_specs(self, application_id: str) -> tuple[StoreSpec, ...]:
        """The last values."""
        return (StoreSpec.kept(self.store, "key-value", application_id, self.name, history=self.history),)


@dataclass(frozen=True, slots=True)
class ToStreamNode(StepNode):
    """The changes of the table `input`, as records; its output is a stream."""

    KIND: ClassVar[str] = "to-stream"

    path: str

    @property
    def summary(self) -> str:
        """The step in a user's words."""
        return "to a stream"
