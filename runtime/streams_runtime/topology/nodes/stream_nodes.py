"""The nodes of the plan that only streams have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streams_runtime.topology.nodes.plan_node import StepNode, columns_of


@dataclass(frozen=True, slots=True)
class FlatMapNode(StepNode):
    """A record of each element of the array `explode`, which the column `column` holds beside the other ones."""

    KIND: ClassVar[str] = "flat-map"

    explode: str
    column: str
    path: str

    @property
    def summary(self) -> str:
        """The step in the user's own expressions."""
        return f"flatMap {self.explode} as {self.column}"


@dataclass(frozen=True, slots=True)
class SplitNode(StepNode):
    """Finds for each record the first of `conditions` that is true; its consumers are the branches."""

    KIND: ClassVar[str] = "split"

    conditions: tuple[str, ...]
    path: str

    @property
    def summary(self) -> str:
        """The step in the user's own expressions."""
        return "split, the first that is true"


@dataclass(frozen=True, slots=True)
class BranchNode(StepNode):
    """The records of the split `input` for which `condition` is the first that is true; None: for which none is."""

    KIND: ClassVar[str] = "branch"

    number: int
    condition: str | None

    @property
    def summary(self) -> str:
        """The step in the user's own expressions."""
        return "the rest" if self.condition is None else f"where {self.condition}"


@dataclass(frozen=True, slots=True)
class PeekNode(StepNode):
    """Passes its records on, logs the texts `log` of some and adds up `value` of all. Absent: None.

    `level` is debug or info, `at_most` how many lines a second are logged. `metric` is the name of the sum; without a
    `value` each record adds 1.
    """

    KIND: ClassVar[str] = "peek"
    LEADS_OUT: ClassVar[bool] = True  # what it shows, where nothing follows it

    log: str | None
    level: str
    at_most: int
    metric: str | None
    value: str | None
    path: str

    @property
    def summary(self) -> str:
        """The step in the user's own expressions."""
        log = [] if self.log is None else [f"log {self.log}"]
        return "; ".join([*log, *([] if self.metric is None else [f"count {self.metric}"])])


@dataclass(frozen=True, slots=True)
class HeadersNode(StepNode):
    """Gives each record the headers `headers`, (name, expression), in place of those that it has of these names."""

    KIND: ClassVar[str] = "headers"

    headers: tuple[tuple[str, str], ...]
    path: str

    @property
    def summary(self) -> str:
        """The step in the user's own expressions."""
        return f"headers {columns_of(self.headers)}"


StreamNode = FlatMapNode | SplitNode | BranchNode | PeekNode | HeadersNode
