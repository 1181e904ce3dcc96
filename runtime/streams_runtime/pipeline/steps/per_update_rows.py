"""Spark's part of an aggregate of which every change counts: each record by itself, with its place."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from streams_runtime.batch.columns import FRAGMENT, FROM_OFFSET, FROM_TOPIC, ORDER, ORDINAL, OUT_WINDOW, further
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
    late: Observation | None = None,
) -> DataFrame:
    """What each record adds to its key: as nodes.partials gives it, with ORDER, the record's place and its headers.

    Of time windows what it adds to each that is still open to it, by what the batch says (see windows.in_windows; how
    often a record met a closed one is left in `late`). Of sessions each record is a fragment by itself.
    """
    within, fragment = [ORDER], list[Column]()
    match windows:
        case SessionWindows():
            turns = in_fragments(rows, windows, several_topics, alone=True)
            within, fragment = [FRAGMENT], fragment_columns()
        case TimeWindows():
            assert late is not None
            turns = in_windows(one_by_one(rows, several_topics), windows, several_topics, late)
            within = [OUT_WINDOW, ORDER]
        case _:
            turns = one_by_one(rows, several_topics)
    if FROM_TOPIC in rows.columns:
        turns = turns.withColumns({"_topic": F.col(FROM_TOPIC), "_offset": F.col(FROM_OFFSET)})
    beside = [F.any_value(name).alias(name) for name in (*ORDINAL, *further(rows.columns), "_headers")]
    return partials(state, turns, path, within, [*fragment, *beside])
