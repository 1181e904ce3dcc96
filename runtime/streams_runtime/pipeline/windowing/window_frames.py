"""A batch's records in their windows, and for which of them each record comes too late.

Stream time is the largest time among the records that have reached the aggregate, each record's own included; a window
is closed once its end and grace lie at or before it (KStreamWindowAggregate). Here only the batch is known: what a
record before the batch has closed is left out when the batch meets the store (processors.aggregates.store_updates,
processors.aggregates.session_windows), so that the result does not depend on where batches begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from streams_runtime.batch.columns import (
    ELEMENT,
    FRAGMENT,
    FRAGMENT_COLUMNS,
    FROM_OFFSET,
    FROM_TOPIC,
    MISSED,
    ORDER,
    ORDER_TIME,
    OUT_WINDOW,
)
from streams_runtime.batch.late_records import Missed, sure_age
from streams_runtime.pipeline.spark.frames import frame_of
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.windowing.calendar_columns import with_bounds
from streams_runtime.topology.nodes.window_kinds import SessionWindows, TimeWindows

_START, _END, _, _BEFORE = FRAGMENT_COLUMNS
_TIME, _STREAM_TIME, _WINDOW_END = "_window_time", "_stream_time", "_calendar_end"
_ALONE, _PREVIOUS, _NEW = "_alone", "_previous", "_new"
_NO_TIME = -1
_MISSED_TYPES = (pa.int32(), pa.int32(), pa.list_(pa.int64()))


def in_windows(rows: DataFrame, windows: TimeWindows, several_topics: bool, late: Observed) -> DataFrame:
    """Each record once for each window that is still open to it, with `_window`.

    A query over them leaves in `late` how often a record met a closed one. Records count in the order of their
    offsets; those of `several_topics` as Kafka Streams chooses among partitions, by the time that each has come to.
    """
    timed, order = _ordered(rows, several_topics)
    up_to_here = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    timed = timed.withColumn(_STREAM_TIME, F.max(_TIME).over(up_to_here))
    if windows.timezone is None:
        spread = timed.withColumn(OUT_WINDOW, _starts(windows))
        closed = F.col(OUT_WINDOW) + F.lit(windows.size + windows.grace) <= F.col(_STREAM_TIME)
    else:
        spread = with_bounds(timed, _TIME, windows, OUT_WINDOW, _WINDOW_END)
        closed = F.col(_WINDOW_END) + F.lit(windows.grace) <= F.col(_STREAM_TIME)
    return late.on(spread, F.count_if(closed).alias("late")).where(~closed)


def missed(rows: DataFrame, windows: TimeWindows, several_topics: bool, since: Mapping[int, int]) -> DataFrame:
    """The records that came too late for a window, each once, with the starts of those windows (MISSED, ms).

    Judged as in `in_windows`; `since` is the stream time of each partition before the batch.
    """
    timed, order = _ordered(rows, several_topics)
    up_to_here = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    stream_time = F.greatest(F.max(_TIME).over(up_to_here), _before_the_batch(since))
    timed = timed.withColumn(_STREAM_TIME, stream_time)
    if windows.timezone is None:
        closed = F.col(_STREAM_TIME) - F.lit(windows.size + windows.grace)
        starts = F.filter(_all_starts(windows), lambda start: (start < 0) | (start <= closed))
    else:
        timed = with_bounds(timed, _TIME, windows, OUT_WINDOW, _WINDOW_END)
        is_closed = F.col(_WINDOW_END) + F.lit(windows.grace) <= F.col(_STREAM_TIME)
        starts = F.filter(F.array(OUT_WINDOW), lambda start: (start < 0) | is_closed)
    found = timed.withColumn(MISSED, starts)
    return found.where(F.size(MISSED) > 0)


def in_fragments(
    rows: DataFrame,
    windows: SessionWindows,
    several_topics: bool,
    since: Mapping[int, int] | None = None,
    alone: bool = False,
) -> DataFrame:
    """Each record with the fragment of a session that it belongs to (`_fragment`, a number within its key).

    A fragment is a run of a key's records, in their order, that are sure to end in one session: each at most the gap
    from the one before, and none so old that it may come too late or that a session which it would join may have
    expired. Such a record is a fragment by itself. Where sessions are passed on once they have closed, a record that
    may join one that has begins a fragment. `since` is the stream time of each partition before the batch.
    `alone`: each record is, where it matters which sessions were put together before it came.
    """
    timed, order = _ordered(rows, several_topics)
    before = F.coalesce(F.max(_TIME).over(order.rowsBetween(Window.unboundedPreceding, -1)), F.lit(_NO_TIME))
    if since:
        before = F.greatest(before, _before_the_batch(since))
    age = F.col(_BEFORE) - F.col(_TIME)
    timed = timed.withColumns({_BEFORE: before, ORDER: F.row_number().over(order)})
    timed = timed.withColumn(_ALONE, F.lit(alone) | ((age >= 0) & (age > F.lit(sure_age(windows)))))
    of_a_key = Window.partitionBy("_partition", "_key").orderBy(ORDER)
    timed = timed.withColumn(_PREVIOUS, F.lag(F.struct(_TIME, _ALONE)).over(of_a_key))
    previous = F.col(_PREVIOUS)
    apart = F.abs(F.col(_TIME) - previous[_TIME]) > F.lit(windows.gap)
    if windows.only_final:
        apart = apart | _may_join_a_closed_session(windows, previous[_TIME])
    timed = timed.withColumn(_NEW, previous.isNull() | F.col(_ALONE) | previous[_ALONE] | apart)
    numbered = F.count_if(_NEW).over(of_a_key.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return timed.withColumn(FRAGMENT, numbered)


def _may_join_a_closed_session(windows: SessionWindows, previous: Column) -> Column:
    """Whether a record, which the key's `previous` one lies no more than the gap away from, may join a session that has
    closed: that of the previous record, or one that ended before both, which only a record that is older can reach.
    """
    time, before = F.col(_TIME), F.col(_BEFORE)
    its_session = previous + F.lit(windows.gap + windows.grace) <= before
    return its_session | ((time < previous) & (time + F.lit(windows.grace) <= before))


def one_by_one(rows: DataFrame, several_topics: bool) -> DataFrame:
    """Each record with its number in the order of its partition (ORDER), for windows that each record may begin."""
    timed, order = _ordered(rows, several_topics)
    return timed.withColumn(ORDER, F.row_number().over(order))


def with_order(rows: DataFrame, several_topics: bool) -> DataFrame:
    """Each record with a number that is larger than those before it in its partition (ORDER)."""
    by_offset = not several_topics and not {ELEMENT, FROM_TOPIC} & {*rows.columns}
    return rows.withColumn(ORDER, F.col("_offset")) if by_offset else one_by_one(rows, several_topics)


def those_that_missed(rows: DataFrame, several_topics: bool, found: Sequence[Missed]) -> DataFrame:
    """The records that were found to be too late when the batch met the store, each with what it missed (MISSED)."""
    columns = zip(("_partition", ORDER, MISSED), zip(*found, strict=True), _MISSED_TYPES, strict=True)
    given = frame_of(rows.sparkSession, pa.table({name: pa.array(of, kind) for name, of, kind in columns}))
    return one_by_one(rows, several_topics).join(F.broadcast(given), ["_partition", ORDER])


def fragment_columns() -> list[Column]:
    """What a fragment is, beside its aggregates: FRAGMENT_COLUMNS, times in ms."""
    return [
        F.min(_TIME).alias(_START),
        F.max(_TIME).alias(_END),
        F.min(ORDER).alias(ORDER),
        F.min(_BEFORE).alias(_BEFORE),
    ]


def _ordered(rows: DataFrame, several_topics: bool) -> tuple[DataFrame, WindowSpec]:
    """The rows with their times, and the order of each partition."""
    timed = rows.withColumn(_TIME, F.unix_millis("_timestamp"))
    partition = Window.partitionBy("_partition")
    within = ["_offset", *([ELEMENT] if ELEMENT in rows.columns else [])]
    if not several_topics and FROM_TOPIC not in rows.columns:
        return timed, partition.orderBy(*within)
    topic, *within = ["_topic", *within]
    if FROM_TOPIC in rows.columns:
        topic, *within = FROM_TOPIC, FROM_OFFSET, ELEMENT
    if ORDER_TIME not in rows.columns:  # of one topic
        of_a_topic = Window.partitionBy("_partition", topic).orderBy(within[0])
        timed = timed.withColumn(ORDER_TIME, F.max("_timestamp").over(of_a_topic))
    return timed, partition.orderBy(ORDER_TIME, topic, *within)


def _before_the_batch(since: Mapping[int, int]) -> Column:
    """The stream time of a row's partition before the batch."""
    known = F.create_map(*map(F.lit, chain.from_iterable(since.items())))
    return F.coalesce(known[F.col("_partition")], F.lit(_NO_TIME))


def _starts(windows: TimeWindows) -> Column:
    """The windows that a record falls into, as TimeWindows.windowsFor has them: one row each."""
    return _aligned(F.col(_TIME), windows) if windows.size == windows.advance else F.explode(_all_starts(windows))


def _all_starts(windows: TimeWindows) -> Column:
    """The same in one array. A record from before the first window has the start of one before it, which the store
    leaves out (processors.aggregates.store_updates.without_closed).
    """
    earliest = F.greatest(F.col(_TIME) - F.lit(windows.size - windows.advance), F.lit(windows.offset))
    first = F.least(_aligned(earliest, windows), _aligned(F.col(_TIME), windows))
    return F.sequence(first, F.col(_TIME), F.lit(windows.advance))


def _aligned(time: Column, windows: TimeWindows) -> Column:
    return time - F.pmod(time - F.lit(windows.offset), F.lit(windows.advance))
