"""State side of aggregates of which every change counts, whatever they divide a key's records by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streams_runtime.pipeline.stage import Keyed
from streams_runtime.state.aggregates import AggregateState
from streams_runtime.state.stores import AnyStore
from streams_runtime.tasks.told import Told, merged_one_by_one
from streams_runtime.tasks.told_sessions import told_sessions
from streams_runtime.tasks.told_sliding import told_sliding
from streams_runtime.tasks.updates import stream_times, without_closed
from streams_runtime.topology.nodes import AggregateNode
from streams_runtime.topology.windows import SessionWindows, SlidingWindows, TimeWindows


def told_one_by_one(state: AggregateState, keyed: Keyed, stores: Mapping[int, AnyStore]) -> Told:
    """What each record of a batch (told.change_by_change) makes of its key's contents, or of its windows, in turn.

    Writes nothing. The keys of windows are those of the store.

    Raises:
        StreamsException: a total left its range.
        ProcessorStateException: a store can't be read.
    """
    assert isinstance(keyed.node, AggregateNode)
    match keyed.node.windows:
        case None:
            return merged_one_by_one(state, keyed, stores)
        case TimeWindows():
            keyed, late = without_closed(keyed, stream_times(stores))
            return replace(merged_one_by_one(state, keyed, stores), late=late)
        case SessionWindows() as windows:
            return told_sessions(state, windows, keyed, stores)
        case SlidingWindows():
            return told_sliding(state, keyed, stores)
