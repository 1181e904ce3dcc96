"""What of a whole topology decides how the rows of one node are worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streams_runtime.topology.fork_paths import Forks, forks, in_fork_order, keeps_order, orders_by_time
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.step_nodes import MergeNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.nodes.table_nodes import ToStreamNode
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.stage_order import merges_stages
from streams_runtime.topology.table_parts import per_update_aggregates, table_parts


@dataclass(frozen=True, slots=True)
class Traits:
    """Found once for all batches; the sets are of names of nodes."""

    topology: Topology
    tables: frozenset[str]
    reunions: Mapping[str, Sequence[str]]
    """Merges in which records of one source meet again, and their inputs in the order in which one record comes."""
    over_changes: frozenset[str]
    """Tables that are worked out change by change, behind the stage that changes them."""
    per_update: frozenset[str]
    """Aggregates of which every change counts."""
    merges_stages: frozenset[str]
    """Nodes that take their records in several stages."""
    forks: Mapping[int, Forks]
    """By the number of the sub-topology, of those in which records keep their places."""
    order_times: frozenset[int]
    """Numbers of the sub-topologies whose rows need the turns of their records."""

    @classmethod
    def of(cls, topology: Topology) -> Traits:
        """Those of a topology."""
        subs = topology.subtopologies
        return cls(
            topology,
            topology.tables,
            {
                node.name: in_fork_order(sub, node)
                for sub in subs
                for node in sub.nodes
                if isinstance(node, MergeNode) and node.name in topology.reunions
            },
            frozenset(name for sub in subs for part in table_parts(sub) for name in part.kept),
            frozenset(name for sub in subs for name in per_update_aggregates(sub)),
            frozenset[str]().union(*(merges_stages(sub) for sub in subs)),
            {sub.id: forks(sub) for sub in subs if keeps_order(sub)},
            frozenset(sub.id for sub in subs if orders_by_time(sub)),
        )

    def several_topics(self, node: Node) -> bool:
        """Whether records of more than one topic reach the node; then offsets are no order.

        Results of a join of streams have one of their own. It is lost in a table that they are made to: the records of
        its toStream lie where those do that made the changes, on either side of the join, and several may lie in one
        place.
        """
        sub = next(each for each in self.topology.subtopologies if node in each.nodes)
        by_name = {each.name: each for each in sub.nodes}
        found, waiting = set(), [(node.name, False)]
        while waiting:
            name, through_table = waiting.pop()
            here = by_name[name]
            joins = isinstance(here, StreamJoinNode)
            before = () if joins and not through_table else here.streams
            if joins or not before:
                found.add(name)
            waiting += [(each, through_table or isinstance(here, ToStreamNode)) for each in before]
        return len(found) > 1 or any(each.name in found for each in self.topology.pattern_sources)
