"""A batch's records in their windows, and for which of them each record comes too late.

Stream time is the largest time among the records that have reached the aggregate, each record's own included; a window
is closed once its end and grace lie at or before it (KStreamWindowAggregate). Here only the batch is known: what a
record before the batch has closed is left out when the batch meets the store (tasks.updates), so that the result does
not depend on where batches begin.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from streams_runtime.pipeline.nodes import OUT_WINDOW
from streams_runtime.topology.plan import TimeWindows

_TIME, _STREAM_TIME, _SOURCE_TIME = "_window_time", "_stream_time", "_source_time"


def in_windows(rows: DataFrame, windows: TimeWindows, several_topics: bool, late: Observation) -> DataFrame:
    """Each record once for each window that is still open to it, with `_window`.

    The first query over them leaves in `late` how often a record met a closed one. Records count in the order of their
    offsets; those of `several_topics` as Kafka Streams chooses among partitions, by the time that each has come to.
    """
    timed = rows.withColumn(_TIME, F.unix_millis("_timestamp"))
    partition = Window.partitionBy("_partition")
    order: list[Column] = [F.col("_offset")]
    if several_topics:
        of_a_topic = Window.partitionBy("_partition", "_topic").orderBy("_offset")
        timed = timed.withColumn(_SOURCE_TIME, F.max(_TIME).over(of_a_topic))
        order = [F.col(_SOURCE_TIME), F.col("_topic"), F.col("_offset")]
    up_to_here = partition.orderBy(*order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    spread = timed.withColumn(_STREAM_TIME, F.max(_TIME).over(up_to_here)).withColumn(OUT_WINDOW, _starts(windows))
    closed = F.col(OUT_WINDOW) + F.lit(windows.size + windows.grace) <= F.col(_STREAM_TIME)
    return spread.observe(late, F.count_if(closed).alias("late")).where(~closed)


def _starts(windows: TimeWindows) -> Column:
    """The windows that a record falls into, as TimeWindows.windowsFor has them: one row each."""
    time, advance = F.col(_TIME), F.lit(windows.advance)
    if windows.size == windows.advance:
        return time - F.pmod(time, advance)
    earliest = F.greatest(time - F.lit(windows.size) + advance, F.lit(0))
    return F.explode(F.sequence(earliest - F.pmod(earliest, advance), time, advance))
