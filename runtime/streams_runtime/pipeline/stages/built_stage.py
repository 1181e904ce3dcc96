"""A stage of a batch whose queries are made, before they are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.stages.asked_query import Query
from streams_runtime.topology.nodes.plan_node import PlanNode


@dataclass(frozen=True, slots=True)
class BuiltStage:
    """The queries by the nodes at which rows leave Spark, and what the first query over a node's rows leaves.

    `others` are queries at no node; `accounts` and `peeks` are by the names of sources and peeks.
    """

    outputs: Sequence[tuple[PlanNode, Query]]
    peeks: Mapping[str, Observed] = field(default_factory=dict)
    others: Sequence[Query] = ()
    accounts: Mapping[str, Observed] = field(default_factory=dict)

    @property
    def queries(self) -> list[Query]:
        """All that is asked."""
        return [*(query for _, query in self.outputs), *self.others]

    @property
    def notes(self) -> list[Observed]:
        """What the first query over a node's rows leaves."""
        return [*self.peeks.values(), *self.accounts.values()]
