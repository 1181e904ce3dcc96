"""An aggregate: a batch's partial aggregates join what the stores hold, by the kind of windows that divide its records.

Of an aggregate every change of which counts, each record is applied by itself (per_update_windows). Of any other a
batch's rows are applied at once, and each key, or window, changes once.
"""

from __future__ import annotations

from collections.abc import Mapping

from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.per_update import PerUpdate
from streams_runtime.processors.aggregates.per_update_windows import apply_per_update
from streams_runtime.processors.aggregates.session_windows import merged_sessions, must_be_cut_anew
from streams_runtime.processors.aggregates.sliding_windows import merged_sliding
from streams_runtime.processors.aggregates.store_updates import Merged, merged, stream_times
from streams_runtime.processors.aggregates.suppress import closed
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.store import Updates
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, SlidingWindows

LEFT_OUT = "they were left out; a longer grace takes them, and late: {topic: NAME} of the window keeps what comes later"


def apply(batch: StoreBatch, context: ApplyContext) -> Applied:
    """What the stores will hold, and the table's changes or the rows that the steps behind it go on with.

    Records that came too late for a window go to the topic of late records, where one is declared.
    """
    node = batch.node
    assert isinstance(node, AggregateNode)
    if not len(batch.keys):
        return Applied()
    stores = context.stores_of(node.store)
    state = context.spark.aggregate(node.name)
    if context.spark.emits_per_update(node.name):
        changed = apply_per_update(state, batch, stores)
        return _with_late(node, Applied(updates=_updates(changed, stores), changes=changed.changes), changed, context)
    new = _merged(node, batch, stores, context)
    applied = _with_late(node, Applied(updates=_updates(new, stores)), new, context)
    if new.updates:
        applied.table_rows = new.rows
        if node.windows is not None and node.windows.only_final:
            applied.table_rows = closed(state, node.windows, new, stores, context.spark.key_serde(node.name))
    return applied


def _merged(node: AggregateNode, batch: StoreBatch, stores: Mapping[int, AnyStore], context: ApplyContext) -> Merged:
    state = context.spark.aggregate(node.name)
    match node.windows:
        case SessionWindows():
            times = stream_times(stores)
            if must_be_cut_anew(batch, times):
                batch = context.spark.fragments(node, times, context.begun_with)
            return merged_sessions(state, batch, stores)
        case SlidingWindows():
            return merged_sliding(state, batch, stores)
        case _:
            return merged(state, batch, stores)


def _updates(new: Merged | PerUpdate, stores: Mapping[int, AnyStore]) -> list[tuple[AnyStore, Updates]]:
    return [(stores[partition], updates) for partition, updates in new.updates.items()]


def _with_late(node: AggregateNode, applied: Applied, new: Merged | PerUpdate, context: ApplyContext) -> Applied:
    """The same with the records that came too late; nothing of the batch is in the stores yet."""
    applied.late, applied.late_outcome = new.late, LEFT_OUT
    if node.late_topic is not None:
        applied.late_outcome = f"they went to {node.late_topic}"
        if context.late[node.name] + new.late:
            times = stream_times(context.stores_of(node.store))
            applied.emissions.append(context.spark.late_records(node, times, new.missed, context.begun_with))
    return applied
