"""A topic read as a table: its records are what the store will hold, and the topic is the store's changelog."""

from __future__ import annotations

from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.store_updates import table_updates
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.state.store import Updates
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode


def apply(batch: StoreBatch, context: ApplyContext) -> Applied:
    """The table's changes. Every partition that was read gets its new offset, also when no record of it was kept."""
    node = batch.node
    assert isinstance(node, TableSourceNode)
    updates, nothing = table_updates(batch), Updates([], [], [])
    held = [
        (store, updates.get(partition, nothing), context.ends[node.topic, partition])
        for partition, store in context.stores_of(node.store).items()
        if (node.topic, partition) in context.ends
    ]
    return Applied(source_updates=held, changes=batch)
