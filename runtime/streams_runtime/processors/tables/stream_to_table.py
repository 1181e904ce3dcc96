"""A toTable: the rows of a stream, in the order of its records, become a table that a store keeps."""

from __future__ import annotations

from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.per_update import in_order
from streams_runtime.processors.aggregates.store_updates import table_updates
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.tables.table_versions import versions_of
from streams_runtime.state.open_store import AnyStore, versioned_store
from streams_runtime.state.store import Updates
from streams_runtime.topology.nodes.table_nodes import ToTableNode


def apply(batch: StoreBatch, context: ApplyContext) -> Applied:
    """The table's changes, and what its store will hold: of each key the last row, with a history every row."""
    node = batch.node
    assert isinstance(node, ToTableNode)
    ordered = in_order(batch)
    if node.history is not None:
        versioned = {partition: versioned_store(of_task, node.store) for partition, of_task in context.stores.items()}
        versions = versions_of(ordered, versioned)
        kept: list[tuple[AnyStore, Updates]] = [(versioned[each], own) for each, own in versions.updates.items()]
        return Applied(updates=kept, changes=versions.changes, dropped={DropReason.EXPIRED: versions.expired})
    stores = context.stores_of(node.store)
    updates = [(stores[partition], each) for partition, each in table_updates(ordered).items()]
    return Applied(updates=updates, changes=ordered)
