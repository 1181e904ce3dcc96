"""The names of a batch's columns: one module, so that Spark's side, the scan and the stores' side agree on them."""

from __future__ import annotations

from collections.abc import Iterable

# A record as expressions see it. Names that users can't give: they begin with an underscore.
METADATA = ("_key", "_timestamp", "_topic", "_partition", "_offset", "_headers")
NULL_VALUE = "_null"  # whether the record has no value (a tombstone); its columns are null then
VALUE = "value"  # the one column of a primitive value
RECORD = "_record"  # key, value and timestamp as the topic has them, which a table keeps
CARRIED = "_kept"  # what a row of a table carries with it and its steps do not see
WINDOW_START, WINDOW_END = "_window_start", "_window_end"  # of the rows of a windowed aggregate

# The order of records (batch.record_order).
ORDINAL = ("_topic", "_offset", "_timestamp")  # where a record is, and its time
ORDER_TIME = "_turn"  # the time by which a record is ordered, where that is another one than its own
FROM_TOPIC, FROM_OFFSET = "_from_topic", "_from_offset"  # the record that a result without an offset came of
ELEMENT = "_element"  # which of its record's rows it is: numbers of elements, and of fork paths
FORK = "_way"  # which input of a merge a row comes from, counted from 0
ORDER = "_record_order"
"""The column of a batch's rows that puts the records of a partition in their order."""

# What leaves a stage.
OUT_KEY, OUT_VALUE, OUT_TIME = "_key", "_value", "_time"  # the time in ms
OUT_WINDOW = "_window"  # start of a row's window, ms
OUT_WINDOW_END = "_window_until"  # its end, ms
OUT_TOPIC, OUT_ORDER_TIME = "_came_of_topic", "_turn_time"  # of records for a repartition topic
OUT_CHOSEN = "_chosen_topic"  # the topic of each record of a sink with topicBy
OUT_PARTITION = "_chosen_partition"  # the partition of each record of a sink or a repartition with partitionBy
ORIGIN = ("_origin_topic", "_origin_partition", "_origin_offset")  # where the record was that such a record came of
OUT_RECORDS = "_records"  # how many records a partial aggregate stands for

# Of single kinds of step.
BRANCH = "_branch"  # which branch of a split, or output of a process step, a row goes to, from 0; null: to all
MISSED = "_missed"  # the starts (ms) of the windows that a record came too late for
FRAGMENT = "_fragment"
FRAGMENT_COLUMNS = ("_fragment_start", "_fragment_end", ORDER, "_stream_time_before")
ID = "_id"  # what a dedupe compares
LOOKUP = "_lookup"  # the value of a global join's `on`
MATCH = "_match"  # the bytes that the table holds for a record's key
SIDE = "_side"  # a topology.nodes.stream_join_node.Side
LEFT, RIGHT = "_left", "_right"  # JSON of both records of a result; null where there is none
FOREIGN_KEY = "_foreign_key"
OTHER = "_other"  # the right table's row as JSON; null where there is none

HIDDEN = frozenset(
    {
        *METADATA,
        NULL_VALUE,
        RECORD,
        ELEMENT,
        FORK,
        WINDOW_START,
        WINDOW_END,
        CARRIED,
        ORDER_TIME,
        FROM_TOPIC,
        FROM_OFFSET,
    }
)
"""Columns that are no part of a record's value."""


def further(columns: Iterable[str]) -> list[str]:
    """What the order of rows goes by beside PLACE, as far as it is among the columns."""
    return [name for name in (ORDER_TIME, ELEMENT) if name in columns]
