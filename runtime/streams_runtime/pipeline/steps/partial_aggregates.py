"""What a batch's rows come to at an aggregate, by its kind of windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.columns import FRAGMENT, ORDER, OUT_WINDOW
from streams_runtime.batch.late_records import Missed
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.steps.aggregate_columns import partials
from streams_runtime.pipeline.steps.per_update_rows import change_by_change
from streams_runtime.pipeline.topology_traits import Traits
from streams_runtime.pipeline.windowing.late_frames import late_records
from streams_runtime.pipeline.windowing.window_frames import (
    fragment_columns,
    in_fragments,
    in_windows,
    missed,
    one_by_one,
    those_that_missed,
    with_order,
)
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, SlidingWindows, TimeWindows


def partial_aggregates(
    traits: Traits,
    state: AggregateState,
    node: AggregateNode,
    rows: DataFrame,
    late: Observed,
    since: Mapping[int, int] | None = None,
) -> DataFrame:
    """The batch's contribution to the node's state, from the rows that it takes (see aggregate_columns.partials).

    Of time windows, how often a record came too late is left in `late`. `since`: see window_frames.in_fragments.
    """
    several = traits.several_topics(node)
    if node.name in traits.per_update:
        return change_by_change(state, rows, node.path, several, node.windows, late)
    by_order_time = several and state.by_offsets
    if by_order_time or (state.lists_in_order and isinstance(node.windows, TimeWindows | None)):
        rows = with_order(rows, several)
    if by_order_time:
        # Where offsets are no order it is refused, but for changes of a table behind a join of streams: by their turns.
        rows = rows.withColumn("_offset", F.col(ORDER))
    match node.windows:
        case None:
            return partials(state, rows, node.path)
        case TimeWindows() as windows:
            return partials(state, in_windows(rows, windows, several, late), node.path, (OUT_WINDOW,))
        case SlidingWindows():
            return partials(state, one_by_one(rows, several), node.path, (ORDER,))
        case SessionWindows() as windows:
            fragments = in_fragments(rows, windows, several, since, state.needs_order)
            return partials(state, fragments, node.path, (FRAGMENT,), fragment_columns())


def late_rows(
    traits: Traits, node: AggregateNode, rows: DataFrame, since: Mapping[int, int], found: Sequence[Missed]
) -> DataFrame:
    """The rows that came too late for a window of the node; see late_frames.late_records.

    Of time windows they are looked for by the stream time of each partition before the batch, `since`; of others
    they were found when the batch met the store.
    """
    several = traits.several_topics(node)
    if isinstance(node.windows, TimeWindows):
        late = missed(rows, node.windows, several, since)
    else:
        late = those_that_missed(rows, several, found)
    return late_records(node, late, rows.columns)
