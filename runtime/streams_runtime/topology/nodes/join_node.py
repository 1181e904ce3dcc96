"""The join of a stream with a table in the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streams_runtime.topology.nodes.plan_node import StepNode, columns_of


@dataclass(frozen=True, slots=True)
class JoinNode(StepNode):
    """Each record of `input` beside what the table source `table` holds for its key when its turn comes.

    `select` holds (column, expression) in order: columns that are added or replaced. With `left` a record without a
    match goes on as well. `on` is what is looked up instead of the key, in a global table; None for any other table.
    """

    KIND: ClassVar[str] = "join"
    LEADS_OUT: ClassVar[bool] = True

    table: str
    left: bool
    select: tuple[tuple[str, str], ...]
    path: str
    on: str | None = None

    @property
    def needs_key(self) -> bool:
        """Not of a left join; with a global table it is what is looked up that must not be null."""
        return not self.left

    @property
    def needs_value(self) -> bool:
        """Always."""
        return True

    @property
    def summary(self) -> str:
        """The join in a user's words."""
        left = "left join" if self.left else "join"
        on = "" if self.on is None else f" on {self.on}"
        return f"{left} with {self.table}{on}: {columns_of(self.select)}"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The stream and the table; of a join with a global table the stream."""
        return (self.input, self.table) if self.on is None else (self.input,)

    @property
    def streams(self) -> tuple[str, ...]:
        """The stream."""
        return (self.input,)

    @property
    def needs(self) -> tuple[str, ...]:
        """The stream and the table, a global one too."""
        return (self.input, self.table)
