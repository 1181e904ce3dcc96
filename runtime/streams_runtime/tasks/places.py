"""The one order of what a batch has of several topics: which record's turn it is.

By the time that each topic's partition has come to, as Kafka Streams chooses among partitions; then tables before
streams, and of one topic by the offsets.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streams_runtime.pipeline.decode import FROM_OFFSET, FROM_TOPIC, TURN
from streams_runtime.pipeline.stream_nodes import ELEMENT

Place = tuple[int, int, int, str, int, int]
"""Partition, time that its topic has come to, rank of the topic, topic, offset, rank: sorts by turn."""
Rows = tuple[Sequence[int], pa.Table]
"""The partition of each row, and the rows' topics, offsets and times, beside whatever else they have."""


def places(partitions: Sequence[int], rows: pa.Table) -> list[Place]:
    """The place of each row."""
    return places_among((partitions, rows))[0]


def places_among(*several: Rows) -> list[list[Place]]:
    """The place of each row of several tables or streams: what one record changes, it changes in their order.

    A topic has the rank of the first of them that has records of it.
    """
    where: list[tuple[int, str, int, int, int, int]] = []  # partition, topic, offset, time, of several, row
    ranks: dict[str, int] = {}
    for number, (partitions, rows) in enumerate(several):
        times = rows[TURN if TURN in rows.column_names else "_timestamp"].cast(pa.int64()).to_pylist()
        came_of = FROM_TOPIC in rows.column_names
        topics = rows[FROM_TOPIC if came_of else "_topic"].to_pylist()
        offsets = rows[FROM_OFFSET if came_of else "_offset"].to_pylist()
        for topic in set(topics):
            ranks.setdefault(topic, number)
        places_of_rows = zip(partitions, topics, offsets, times, strict=True)
        where += [(*each, number, row) for row, each in enumerate(places_of_rows)]
    found: list[list[Place]] = [[(0, 0, 0, "", 0, 0)] * len(partitions) for partitions, _ in several]
    come: dict[tuple[int, str], int] = {}
    for partition, topic, offset, time, number, row in sorted(where):
        come[partition, topic] = max(time, come.get((partition, topic), time))
        found[number][row] = (partition, come[partition, topic], ranks[topic], topic, offset, number)
    return found


def ways_of(rows: pa.Table) -> list[list[int]]:
    """Which of its record's rows each one is, as lists that sort; the same for all if nothing tells them apart."""
    if ELEMENT not in rows.column_names:
        return [[]] * len(rows)
    return [each or [] for each in rows[ELEMENT].to_pylist()]
