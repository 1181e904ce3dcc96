"""A batch's part of a side of a join by a foreign key."""

from __future__ import annotations

from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.joins.fk_response import answered
from streams_runtime.processors.joins.fk_subscription import joined
from streams_runtime.processors.tables.table_snapshots import events_of
from streams_runtime.topology.declared.foreign_key_step import ForeignKeySide
from streams_runtime.topology.nodes.foreign_key_nodes import ResponseNode


def apply(side: ForeignKeySide, context: ApplyContext) -> Applied:
    """What changes of tables and records of the other side come to."""
    spark, stores = context.spark, context.stores
    events = events_of(side.table, context.changes, stores, spark, context.arrived.get(side.node.incoming))
    if not events.sequence:
        return Applied()
    if isinstance(side.node, ResponseNode):
        return answered(side.node, side.table, spark, events, stores)
    return joined(side.node, side.table, spark, events, stores)
