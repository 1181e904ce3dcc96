"""Spark's part of an aggregate of which every change counts: each record by itself, with its place."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.columns import FRAGMENT, FROM_OFFSET, FROM_TOPIC, ORDER, ORDINAL, OUT_WINDOW, further
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.steps.aggregate_columns import partials
from streams_runtime.pipeline.windowing.window_frames import fragment_columns, in_fragments, in_windows, one_by_one
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.topology.nodes.window_kinds import SessionWindows, TimeWindows, Windows


def change_by_change(
    state: AggregateState,
    rows: DataFrame,
    path: str,
    several_topics: bool,
    windows: Windows | None = None,
    late: Observed | None = None,
) -> DataFrame:
    """What each record adds to its key, as `partials` gives it, with ORDER, the record's ordinal and its headers.

    Of time windows it is what the record adds to each that is still open by what the batch says (in_windows); `late`
    counts how often a record met a closed one. Of sessions each record is a fragment by itself.
    """
    within, fragment = [ORDER], list[Column]()
    match windows:
        case SessionWindows():
            ordered = in_fragments(rows, windows, several_topics, alone=True)
            within, fragment = [FRAGMENT], fragment_columns()
        case TimeWindows():
            assert late is not None
            ordered = in_windows(one_by_one(rows, several_topics), windows, several_topics, late)
            within = [OUT_WINDOW, ORDER]
        case _:
            ordered = one_by_one(rows, several_topics)
    if FROM_TOPIC in rows.columns:
        ordered = ordered.withColumns({"_topic": F.col(FROM_TOPIC), "_offset": F.col(FROM_OFFSET)})
    beside = [F.any_value(name).alias(name) for name in (*ORDINAL, *further(rows.columns), "_headers")]
    return partials(state, ordered, path, within, [*fragment, *beside])
