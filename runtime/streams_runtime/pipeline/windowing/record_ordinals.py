"""The places of a batch's rows: which record each came of, when its turn was, and which of that record's rows it is.

Rows of a sub-topology that takes turns (topology.fork_paths) have TURN, and of one that keeps places ELEMENT: a list of
numbers that sorts the rows of one record as Kafka Streams would hand them on. Each fork adds the number of a way, each
flatMap that of an element, each join of streams that of a result; what these give has FROM_TOPIC and FROM_OFFSET too.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from streams_runtime.batch.columns import ELEMENT, FROM_OFFSET, FROM_TOPIC, ORDER_TIME


def no_element() -> Column:
    """The ELEMENT of what is all that its record has become."""
    return F.array().cast("array<int>")


def with_order_time(records: DataFrame) -> DataFrame:
    """All readable records of a source, each with the time that its topic's partition has come to with it (TURN).

    Asked for before any is dropped: what a step leaves out has had its turn all the same (PartitionGroup).
    """
    of_a_topic = Window.partitionBy("_topic", "_partition").orderBy("_offset")
    return records.withColumn(ORDER_TIME, F.max("_timestamp").over(of_a_topic))


def on_one_path(records: DataFrame) -> DataFrame:
    """The records of a source, before any way parts."""
    return records.withColumn(ELEMENT, no_element())


def on_fork_path(rows: DataFrame, number: int) -> DataFrame:
    """The rows on one of the ways behind a fork."""
    return rows.withColumn(ELEMENT, F.concat(ELEMENT, F.array(F.lit(number))))


def ordinal_columns(rows: DataFrame) -> list[Column]:
    """What the rows have of their places, as columns of these names; FROM_TOPIC and FROM_OFFSET in any case."""
    came_of = FROM_TOPIC in rows.columns
    topic, offset = (FROM_TOPIC, FROM_OFFSET) if came_of else ("_topic", "_offset")
    more = [F.col(name) for name in (ORDER_TIME, ELEMENT) if name in rows.columns]
    return [F.col(topic).alias(FROM_TOPIC), F.col(offset).alias(FROM_OFFSET), *more]
