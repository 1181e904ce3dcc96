"""Which records a node takes, and how many it does not."""

from __future__ import annotations

from functools import cache

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from streams_runtime.batch.columns import LOOKUP, NULL_VALUE
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode, TableSourceNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode

Choosy = AggregateNode | JoinNode | RepartitionSinkNode | TableSourceNode | ToTableNode


@cache
def usable(node: Choosy) -> Column:
    """Whether the node takes a record. A join with a global table asks for what it looks up instead of the key."""
    looks_up = isinstance(node, JoinNode) and node.on is not None
    key = F.col(LOOKUP if looks_up else "_key").isNotNull() if node.needs_key else F.lit(True)
    return key & ~F.col(NULL_VALUE) if node.needs_value else key


def taken(node: Choosy, rows: DataFrame, dropped: Observation) -> DataFrame:
    """The rows that the node takes; the first query over them leaves in `dropped` how many it does not."""
    return rows.observe(dropped, _left_out(node)).where(usable(node))


@cache
def _left_out(node: Choosy) -> Column:
    return F.count_if(~usable(node)).alias("dropped")
