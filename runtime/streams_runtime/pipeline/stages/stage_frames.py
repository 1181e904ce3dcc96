"""A stage of a batch while its frames are built: the rows that each node gives, and where rows leave Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.topology_traits import Traits
from streams_runtime.topology.nodes.plan_node import PlanNode
from streams_runtime.topology.plan import SubTopology

Frames = Mapping[str, DataFrame]


@dataclass(frozen=True, slots=True)
class OutputFrame:
    """A node at which rows leave Spark, and the rows that reach it. A peek is one when nothing follows it.

    So is a source of raw records, which Spark has no more to do with.
    """

    node: PlanNode
    rows: DataFrame


@dataclass(slots=True)
class StageFrames:
    """`given` has the rows that nodes give, by name, and at first those that the stage begins with.

    `peeks`, where it is wanted, has by a peek's name what a query over its records leaves what it has seen in.
    `is_whole`: the rows that it begins with are each in one partition of Spark's, and all others are to be.
    """

    traits: Traits
    sub: SubTopology
    given: dict[str, DataFrame]
    peeks: dict[str, Observed] | None = None
    is_whole: bool = False
    outputs: list[OutputFrame] = field(default_factory=list)

    @property
    def keeps_order(self) -> bool:
        """Whether rows of the sub-topology have their places."""
        return self.sub.id in self.traits.forks

    def leave(self, node: PlanNode, rows: DataFrame) -> None:
        """Rows leave Spark at the node."""
        self.outputs.append(OutputFrame(node, rows))
