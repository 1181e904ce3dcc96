"""Global tables in a plan: each is a sub-topology of its own, for which there are no tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streams_runtime.api import StreamsApplication
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.store_specs import StoreSpec


def global_sources(application: StreamsApplication, nodes: Iterable[Node]) -> tuple[TableSourceNode, ...]:
    """Those of the nodes that are global tables, in their order."""
    names = {each.name for each in application.spec.topology.sources if each.table is not None and each.table.global_}
    return tuple(node for node in nodes if isinstance(node, TableSourceNode) and node.name in names)


def global_tables(sources: Sequence[TableSourceNode], first_id: int) -> tuple[SubTopology, ...]:
    """The sub-topologies of global tables, whose ids count from `first_id`: they move no task's own."""
    return tuple(_global_table(first_id + index, source) for index, source in enumerate(sources))


def _global_table(id: int, source: TableSourceNode) -> SubTopology:
    store = StoreSpec(source.store, "key-value", source.topic, source_changelog=True, node=source.name, global_=True)
    return SubTopology(id, (source,), (source.topic,), (), (), (store,))
