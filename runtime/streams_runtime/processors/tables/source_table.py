"""A topic read as a table: its records are what the store will hold, and the topic is the store's changelog.

Where records may be left out, which the topic would bring back, the store has a changelog of its own.
"""

from __future__ import annotations

from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.store_updates import table_updates
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.tables.table_versions import versions_of
from streams_runtime.state.open_store import AnyStore, versioned_store
from streams_runtime.state.store import Updates
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode


def apply(batch: StoreBatch, context: ApplyContext) -> Applied:
    """The table's changes. Every partition that was read gets its new offset, also when no record of it was kept."""
    node = batch.node
    assert isinstance(node, TableSourceNode)
    if node.history is not None:
        stores = {partition: versioned_store(of_task, node.store) for partition, of_task in context.stores.items()}
        versions = versions_of(batch, stores)
        updates, batch, dropped = versions.updates, versions.changes, {DropReason.EXPIRED: versions.expired}
    else:
        updates, dropped = table_updates(batch), {}
    if node.own_changelog:
        stores_of = context.stores_of(node.store)
        kept: list[tuple[AnyStore, Updates]] = [(stores_of[each], own) for each, own in updates.items()]
        return Applied(updates=kept, changes=batch, dropped=dropped)
    nothing = Updates([], [], [])
    held = [
        (store, updates.get(partition, nothing), context.ends[node.topic, partition])
        for partition, store in context.stores_of(node.store).items()
        if (node.topic, partition) in context.ends
    ]
    return Applied(source_updates=held, changes=batch, dropped=dropped)
