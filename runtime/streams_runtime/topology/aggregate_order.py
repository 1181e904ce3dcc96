"""Aggregates that go by the order of their records, and records that have none."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.sql.aggregate_calls import ORDERED
from streams_runtime.errors import Mistake
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.step_nodes import MergeNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.stage_order import merges_stages


def order_mistakes(topology: Topology) -> Iterator[Mistake]:
    """Every aggregate column of the topology that needs one order of all records, where offsets are none."""
    gathers = frozenset[str]().union(*(merges_stages(sub) for sub in topology.subtopologies))
    for node in topology.nodes:
        if isinstance(node, AggregateNode) and any(each.function in ORDERED for each in node.aggregates):
            yield from _of_aggregate(topology, node, gathers)


def _of_aggregate(topology: Topology, node: AggregateNode, gathers: frozenset[str]) -> Iterator[Mistake]:
    patterns = {source.name for source in topology.pattern_sources}
    sources = topology.sources_of(node.name)
    if len(sources) > 1 or sources & patterns:
        of_what = "several topics"
    elif topology.flat_mapped(node.name):
        of_what = "a flatMap or a process step"
    elif _gathered_before(topology, node, gathers):
        of_what = "a merge behind a join or a dedupe"
    else:
        return
    for each in node.aggregates:
        if each.function in ORDERED:
            yield Mistake(
                each.path,
                f"{each.function} of the records of {of_what}, which have no order by their offsets",
                "put the aggregate before the merge or the other step, or use min, max or approx_percentile",
            )


def _gathered_before(topology: Topology, node: Node, gathers: frozenset[str]) -> bool:
    """Whether records reach the node, in its sub-topology, from a merge of several stages."""
    inputs = [topology.node(name) for name in node.streams]
    return any(
        (isinstance(each, MergeNode) and each.name in gathers)
        or (not isinstance(each, StreamJoinNode) and _gathered_before(topology, each, gathers))
        for each in inputs
    )
