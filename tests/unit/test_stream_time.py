"""What a batch writes to a repartition topic goes in the order in which Kafka Streams would merge its partitions."""

from __future__ import annotations

from itertools import accumulate

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.pipeline.windowing.repartition_order import stream_time_order

Row = tuple[int, str | None, int]
"""Partition, topic, and time."""
rows = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None]), st.integers(0, 40)), max_size=60)


def order_of(given: list[Row]) -> list[int]:
    partitions, topics, times = (pa.chunked_array([[row[at] for row in given]], kind) for at, kind in enumerate(KINDS))
    found: list[int] = stream_time_order(partitions, topics, times).to_pylist()
    return found


KINDS = (pa.int32(), pa.string(), pa.int64())


def merged(given: list[Row]) -> list[Row]:
    """Kafka Streams' PartitionGroup: always the partition whose next record has the smallest time."""
    logs: dict[tuple[int, str | None], list[Row]] = {}
    for row in given:
        logs.setdefault(row[:2], []).append(row)
    found, last = [], None
    while any(logs.values()):
        heads = {log: waiting[0][2] for log, waiting in logs.items() if waiting}
        smallest = min(heads.values())
        # Among equal times nothing is promised: here those that follow in a log that is being read come first.
        log = last if last in heads and heads[last] <= smallest else min(heads, key=lambda each: heads[each])
        found.append(logs[log].pop(0))
        last = log
    return found


def lateness(given: list[Row]) -> list[int]:
    """How far each row lies behind the largest time up to it."""
    return [come - row[2] for row, come in zip(given, accumulate((row[2] for row in given), max), strict=True)]


@given(rows)
def test_each_partition_of_a_topic_keeps_its_order(given: list[Row]) -> None:
    order = order_of(given)
    assert sorted(order) == list(range(len(given)))
    for log in {row[:2] for row in given}:
        mine = [number for number in order if given[number][:2] == log]
        assert mine == sorted(mine)


@given(rows)
def test_each_row_is_as_late_as_in_its_own_partition(given: list[Row]) -> None:
    in_order = [given[number] for number in order_of(given)]
    late = list(zip(in_order, lateness(in_order), strict=True))
    for log in {row[:2] for row in given}:
        alone = lateness([row for row in given if row[:2] == log])
        assert [each for row, each in late if row[:2] == log] == alone


@given(st.lists(st.tuples(st.integers(0, 3), st.just("a"), st.integers(0, 10**6)), unique_by=lambda row: row[2]))
def test_partitions_are_merged_by_the_time_of_what_comes_next(given: list[Row]) -> None:
    assert [given[number] for number in order_of(given)] == merged(given)


def test_nothing_has_an_order() -> None:
    assert order_of([]) == []
