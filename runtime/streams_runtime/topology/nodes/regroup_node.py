"""The node of the plan that tells which rows of a table leave a group, and which come to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streams_runtime.topology.nodes.aggregate_node import Aggregate
from streams_runtime.topology.nodes.plan_node import StepNode


@dataclass(frozen=True, slots=True)
class RegroupNode(StepNode):
    """Writes to the repartition topic `topic` each change of a row of the table `input`, under the row's groups.

    A row's group is what the expression `key` gives; of null it has none. A record has what the `aggregates` take of
    the row as it was in the group (`old`) and as it is in it now (`new`), null where it is not in it. So a change
    within a group is one record (KIP-904), and a row that goes from one group to another is two, the old group's first.
    """

    KIND: ClassVar[str] = "regroup"

    key: str
    aggregates: tuple[Aggregate, ...]
    topic: str
    path: str

    @property
    def summary(self) -> str:
        """The groups in the user's own expression."""
        return f"groupBy {self.key}"

    @property
    def internal_topic(self) -> str | None:
        """The repartition topic."""
        return self.topic
