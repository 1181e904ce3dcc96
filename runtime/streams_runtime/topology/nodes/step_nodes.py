"""The nodes of the plan that keep nothing, of streams and of tables."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from streams_runtime.topology.nodes.plan_node import PlanNode, StepNode, columns_of


@dataclass(frozen=True, slots=True)
class TransformNode(StepNode):
    """`where` (first) and `select` (then), either or both; `select` holds (column, expression) in order.

    One with neither is a further source of the topic that `input` reads.
    """

    KIND: ClassVar[str] = "transform"

    where: str | None
    select: tuple[tuple[str, str], ...] | None
    path: str
    keeps_columns: bool = False
    """Whether the columns that `select` does not name stay."""

    @property
    def summary(self) -> str:
        """The step in the user's own expressions."""
        if self.is_source:
            return f"read by {self.input}"
        where = [f"where {self.where}"] if self.where is not None else []
        every = "*, " if self.keeps_columns else ""
        select = [f"select {every}{columns_of(self.select)}"] if self.select is not None else []
        return "; ".join(where + select)

    @property
    def is_source(self) -> bool:
        """Whether it is another source of one topic."""
        return self.where is None and self.select is None

    def makes_table(self, tables: Collection[str]) -> bool:
        """Of a table."""
        return self.input in tables


@dataclass(frozen=True, slots=True)
class KeyByNode(StepNode):
    """Gives each record the value of the expression `key` as its key."""

    KIND: ClassVar[str] = "key-by"

    key: str
    path: str

    @property
    def summary(self) -> str:
        """The step in the user's own expressions."""
        return f"keyBy {self.key}"


@dataclass(frozen=True, slots=True)
class MergeNode(PlanNode):
    """All records of all inputs, which have the same columns."""

    KIND: ClassVar[str] = "merge"

    merged: tuple[str, ...]
    path: str

    @property
    def summary(self) -> str:
        """The step in a user's words."""
        return "merge"

    @property
    def inputs(self) -> tuple[str, ...]:
        """All of them."""
        return self.merged
