"""A batch that fails by one of its records, in parts: each record once, in order, and at a cost that is bounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.batch.columns import ORDER_TIME
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.processing.failures.isolation import Isolation, isolation_of

Place = tuple[str, int, int]
"""Topic, partition, offset."""


@dataclass(frozen=True)
class Log:
    """What a batch has of a partition: offsets with their times, None where one can't be read, and where it ends."""

    topic: str
    partition: int
    records: tuple[tuple[int, int | None], ...]
    start: int
    end: int

    @property
    def offset_range(self) -> OffsetRange:
        return OffsetRange(TopicPartition(self.topic, self.partition), self.start, self.end)


def batch_of(logs: Sequence[Log], fetched: bool = True) -> BatchInput:
    rows = [
        {"topic": log.topic, "partition": log.partition, "offset": offset, "timestamp": 0}
        for log in logs
        for offset, _ in log.records
    ]
    records = pa.Table.from_pylist(rows, schema=RAW_SCHEMA) if fetched else None
    return BatchInput(tuple(log.offset_range for log in logs), records)


def isolation(logs: Sequence[Log], fetched: bool = True, tables: Collection[str] = ()) -> Isolation:
    readable = [
        {"_topic": log.topic, "_partition": log.partition, "_offset": offset, ORDER_TIME: time}
        for log in logs
        for offset, time in log.records
        if time is not None
    ]
    names = {"_topic": pa.string(), "_partition": pa.int32(), "_offset": pa.int64(), ORDER_TIME: pa.timestamp("us")}
    schema = pa.schema(list(names.items()))
    return isolation_of(batch_of(logs, fetched), pa.Table.from_pylist(readable, schema=schema), tables)


@dataclass
class Played:
    """What has become of the records, in order: those that passed, and those that were left out."""

    passed: list[Place] = field(default_factory=list)
    left_out: list[Place] = field(default_factory=list)
    parts: list[BatchInput] = field(default_factory=list)
    tries: int = 0


def offsets_in(part: BatchInput, logs: Sequence[Log]) -> list[Place]:
    """The records of a part, by its ranges; where it has fetched ones, exactly these."""
    found = [
        (log.topic, log.partition, offset)
        for each in part.ranges
        for log in logs
        if log.offset_range.partition == each.partition
        for offset, _ in log.records
        if each.start <= offset < each.end
    ]
    if part.records is not None:
        rows = part.records.select(["topic", "partition", "offset"]).to_pylist()
        assert sorted(found) == sorted((row["topic"], row["partition"], row["offset"]) for row in rows)
    return found


def play(made: Isolation, logs: Sequence[Log], fails: Callable[[Place], bool]) -> Played:
    found = Played()
    while not made.is_done:
        part = made.part()
        records = offsets_in(part, logs)
        found.tries += 1
        assert found.tries <= 5 * sum(log.end - log.start for log in logs) + 50, "it does not come to an end"
        if not any(map(fails, records)):
            made.passed()
            found.passed += records
        elif made.failed():
            made.left_out()
            found.left_out += records
        else:
            continue
        found.parts.append(part)
    return found


@st.composite
def several_logs(draw: st.DrawFn) -> list[Log]:
    logs = []
    for topic, partition in draw(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=5, unique=True)
    ):
        start = draw(st.integers(0, 5))
        offsets = sorted(draw(st.sets(st.integers(start, start + 12), max_size=12)))
        times = [draw(st.none() | st.integers(0, 8)) for _ in offsets]
        end = (offsets[-1] + 1 if offsets else start) + draw(st.integers(0, 2))
        logs.append(Log(topic, partition, tuple(zip(offsets, times, strict=True)), start, end))
    return logs


@given(several_logs(), st.sets(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 17))), st.booleans())
def test_each_record_passes_once_or_is_left_out_and_the_parts_follow_on_each_other(
    logs: list[Log], bad: set[Place], fetched: bool
) -> None:
    all_records = [(log.topic, log.partition, offset) for log in logs for offset, _ in log.records]
    if not all_records:
        return
    played = play(isolation(logs, fetched), logs, bad.__contains__)
    assert sorted(played.passed) == sorted(each for each in all_records if each not in bad)
    assert sorted(played.left_out) == sorted(each for each in all_records if each in bad)
    at = {log.offset_range.partition: log.start for log in logs}
    for part in played.parts:
        for each in part.ranges:
            assert at[each.partition] == each.start < each.end
            at[each.partition] = each.end
    assert at == {log.offset_range.partition: log.end for log in logs}


@given(several_logs(), st.sets(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 17))))
def test_what_one_task_reads_is_worked_off_by_the_times_that_its_inputs_have_come_to(
    logs: list[Log], bad: set[Place]
) -> None:
    come: dict[Place, tuple[int, bool]] = {}
    for log in logs:
        latest = -1
        for offset, time in log.records:
            latest = max(latest, -1 if time is None else time)
            come[log.topic, log.partition, offset] = (latest, log.topic != "b")
    if not come:
        return
    played = play(isolation(logs, tables=["b"]), logs, bad.__contains__)
    before: dict[int, tuple[int, bool]] = {}
    for part in played.parts:
        records = offsets_in(part, logs)
        for number in {partition for _, partition, _ in records}:
            mine = [come[each] for each in records if each[1] == number]
            assert min(mine) >= before.get(number, (-1, False)), "a part has a record whose turn was in an earlier one"
            before[number] = max(mine)


def one_log(count: int) -> list[Log]:
    return [Log("a", 0, tuple((at, at) for at in range(count)), 0, count)]


@pytest.mark.parametrize("at", [0, 1, 5000, 9998, 9999])
def test_one_record_among_many_costs_as_many_parts_as_halvings(at: int) -> None:
    logs = one_log(10_000)
    played = play(isolation(logs), logs, lambda place: place[2] == at)
    assert played.left_out == [("a", 0, at)]
    assert played.tries <= 3 * math.log2(10_000)


def test_where_every_record_fails_each_is_tried_once() -> None:
    logs = one_log(500)
    played = play(isolation(logs), logs, lambda _: True)
    assert (len(played.left_out), played.passed) == (500, [])
    assert played.tries <= 500 + math.log2(500) + 1


def test_where_nothing_fails_any_more_few_parts_do_it() -> None:
    logs = one_log(10_000)
    played = play(isolation(logs), logs, lambda _: False)
    assert len(played.passed) == 10_000
    assert played.tries <= math.log2(10_000) + 2
