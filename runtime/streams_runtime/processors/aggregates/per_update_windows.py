"""State side of aggregates of which every change counts, whatever they divide a key's records by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.per_update import PerUpdate, merged_one_by_one
from streams_runtime.processors.aggregates.per_update_sessions import per_update_sessions
from streams_runtime.processors.aggregates.per_update_sliding import per_update_sliding
from streams_runtime.processors.aggregates.store_updates import stream_times, without_closed
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.open_store import AnyStore
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, SlidingWindows, TimeWindows


def apply_per_update(state: AggregateState, store_batch: StoreBatch, stores: Mapping[int, AnyStore]) -> PerUpdate:
    """What each record of a batch (change_by_change) makes of its key's contents, or of its windows, in turn.

    Writes nothing. The keys of windows are those of the store.

    Raises:
        StreamsException: a total left its range.
        ProcessorStateException: a store can't be read.
    """
    assert isinstance(store_batch.node, AggregateNode)
    match store_batch.node.windows:
        case None:
            return merged_one_by_one(state, store_batch, stores)
        case TimeWindows():
            store_batch, late = without_closed(store_batch, stream_times(stores))
            return replace(merged_one_by_one(state, store_batch, stores), late=late)
        case SessionWindows() as windows:
            return per_update_sessions(state, windows, store_batch, stores)
        case SlidingWindows():
            return per_update_sliding(state, store_batch, stores)
