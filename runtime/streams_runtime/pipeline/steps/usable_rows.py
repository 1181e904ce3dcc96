"""Which records a node takes, and how many it does not."""

from __future__ import annotations

from collections import Counter
from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.columns import LOOKUP, NULL_VALUE
from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode, TableSourceNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode

Choosy = AggregateNode | JoinNode | RepartitionSinkNode | TableSourceNode | ToTableNode


@cache
def usable(node: Choosy) -> Column:
    """Whether the node takes a record. A join with a global table asks for what it looks up instead of the key."""
    return _has_key(node) & ~F.col(NULL_VALUE) if node.needs_value else _has_key(node)


def taken(node: Choosy, rows: DataFrame, dropped: Observed) -> DataFrame:
    """The rows that the node takes; a query over them leaves in `dropped` how many it does not."""
    return dropped.on(rows, *_left_out(node)).where(usable(node))


def left_out(node: Choosy, dropped: Observed) -> Counter[tuple[str, str]]:
    """How many records the node did not take, by its name and the reason."""
    found: Counter[tuple[str, str]] = Counter({(node.name, DropReason.NULL_KEY): dropped[DropReason.NULL_KEY]})
    if node.needs_value:  # each number costs calls into the JVM
        found[node.name, DropReason.NULL_VALUE] = dropped[DropReason.NULL_VALUE]
    return found


@cache
def _has_key(node: Choosy) -> Column:
    looks_up = isinstance(node, JoinNode) and node.on is not None
    return F.col(LOOKUP if looks_up else "_key").isNotNull() if node.needs_key else F.lit(True)


@cache
def _left_out(node: Choosy) -> tuple[Column, ...]:
    keyless = F.count_if(~_has_key(node)).alias(DropReason.NULL_KEY)
    without = F.count_if(_has_key(node) & F.col(NULL_VALUE)).alias(DropReason.NULL_VALUE)
    return (keyless, without) if node.needs_value else (keyless,)
