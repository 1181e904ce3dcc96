"""Tasks that wait for an empty input: what goes on when is what Kafka Streams' rule says, whoever reads it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from example_counts import examples
from fake_logs import FakeBroker, record
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.kafka.client.librdkafka_errors import offset_of, partition_of
from streams_runtime.kafka.consumer.group_consumer import Fetched
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.processing.inputs.alignment import Inputs
from streams_runtime.processing.inputs.intake import Intake, IntakeLimits
from streams_runtime.processing.inputs.task_idling import NOTHING, TaskIdling, joined

INPUTS = tuple(TopicPartition(topic, 0) for topic in "abc")
A, B, C = INPUTS
IDLE = 5.0
Processed = list[tuple[TopicPartition, int]]


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class PartitionGroup:
    """Kafka Streams' rule, record by record, with deadlines of all empty inputs at once."""

    queues: Mapping[TopicPartition, deque[tuple[int, int]]]
    deadlines: dict[TopicPartition, float] = field(default_factory=dict)

    def processed(self, now: float) -> Processed:
        """What a task processes now."""
        found = []
        while self._is_ready(now):
            there = [each for each in self.queues if self.queues[each]]
            each = min(there, key=lambda at: self.queues[at][0][0])
            found.append((each, self.queues[each].popleft()[1]))
        return found

    def _is_ready(self, now: float) -> bool:
        empty = [each for each, queue in self.queues.items() if not queue]
        for each in self.queues:
            if each in empty:
                self.deadlines.setdefault(each, now + IDLE)
            else:
                self.deadlines.pop(each, None)
        return len(empty) < len(self.queues) and all(self.deadlines[each] <= now for each in empty)


ARRIVALS = st.lists(
    st.tuples(
        st.integers(0, 40).map(lambda quarters: quarters / 4),
        st.lists(st.tuples(st.sampled_from(INPUTS), st.integers(0, 4)), max_size=6),
    ),
    max_size=12,
)


@settings(max_examples=examples(200))
@given(ARRIVALS, st.integers(2, 3))
def test_records_go_on_when_kafka_streams_would_process_them(
    arrivals: list[tuple[float, list[tuple[TopicPartition, int]]]], inputs: int
) -> None:
    clock, partitions = Clock(), INPUTS[:inputs]
    idling = TaskIdling([[each.topic for each in partitions]], IDLE, FakeBroker({}), clock)
    model = PartitionGroup({each: deque() for each in partitions})
    ends, times = dict.fromkeys(INPUTS, 0), dict.fromkeys(INPUTS, 0)
    waiting = NOTHING

    def turn(come: Fetched) -> None:
        nonlocal waiting
        now, waiting = idling.parted(joined(waiting, come), partitions, 1000)
        found = [(partition_of(each), offset_of(each)) for each in now.records]
        assert sorted(found) == sorted(model.processed(clock.now))
        assert (idling.at_most(math.inf) < math.inf) == bool(waiting.records)

    for seconds, come in arrivals:
        clock.now += seconds
        records = []
        for partition, further in come:
            if partition in partitions:
                # No two inputs have a record of one time: which of them is first is not said.
                times[partition] += 10 * further
                moment = times[partition] + INPUTS.index(partition)
                records.append(record(partition, ends[partition], time=moment - ends[partition]))
                model.queues[partition].append((moment, ends[partition]))
                ends[partition] += 1
                times[partition] += 10
        turn(Fetched(records, {}))
    while waiting.records:
        clock.now += idling.at_most(math.inf)
        before = len(waiting.records)
        turn(Fetched([], {}))
        assert len(waiting.records) < before


def test_of_several_tasks_each_waits_for_its_own_inputs() -> None:
    idling = TaskIdling([["a", "b"]], IDLE, FakeBroker({}), Clock())
    other = [TopicPartition("a", 1), TopicPartition("b", 1), C]
    records = [record(each, 0) for each in (A, *other)]
    now, waiting = idling.parted(Fetched(records, {}), [A, B, *other], 10)
    assert [partition_of(each) for each in now.records] == other
    assert [partition_of(each) for each in waiting.records] == [A]


def test_no_more_go_on_than_a_batch_may_have_the_earliest_first() -> None:
    idling = TaskIdling([["a", "b"]], IDLE, FakeBroker({}), Clock())
    fetched = Fetched([*(record(A, each) for each in range(4)), *(record(B, each) for each in range(4))], {A: 4, B: 4})
    now, waiting = idling.parted(fetched, [A, B], 4)
    assert sorted((partition_of(each), offset_of(each)) for each in now.records) == [(A, 0), (A, 1), (B, 0), (B, 1)]
    assert (now.ends, waiting.ends) == ({}, {A: 4, B: 4})
    assert idling.at_most(1.0) == 0, "the others are ready"
    assert len(idling.parted(waiting, [A, B], 4)[0].records) == 4


def test_an_end_that_more_came_behind_is_forgotten() -> None:
    idling = TaskIdling([["a", "b"]], IDLE, FakeBroker({}), Clock())
    _, waiting = idling.parted(Fetched([record(A, 0)], {A: 2}), [A, B], 10)
    assert waiting.ends == {A: 2}
    _, waiting = idling.parted(joined(waiting, Fetched([record(A, 2)], {})), [A, B], 10)
    assert ([offset_of(each) for each in waiting.records], waiting.ends) == ([0, 2], {})


def intake_of(broker: FakeBroker, clock: Clock, batch: int = 100, backlog: int = 50) -> Intake:
    tasks = [["a", "b"]]
    limits = IntakeLimits(batch, 0.5, backlog, 20, idle=IDLE)
    return Intake(broker, broker, limits, broker.read, Inputs(tasks, tasks=tasks), clock=clock)


def ranges(batch: BatchInput | None) -> dict[TopicPartition, tuple[int, int]]:
    return {} if batch is None else {each.partition: (each.start, each.end) for each in batch.ranges}


def test_a_record_meets_what_comes_to_the_other_input_within_the_time() -> None:
    broker, clock = FakeBroker({A: 0, B: 0}), Clock()
    intake = intake_of(broker, clock)
    intake.add({A: 0, B: 0})
    assert intake.next() is None
    clock.now = IDLE - 1
    broker.ends[A] = 3
    assert intake.next() is None
    assert broker.waits[-1] == 0.5
    clock.now = IDLE - 0.75
    assert intake.next() is None
    assert intake.next() is None
    assert broker.waits[-1] == 0.5
    broker.ends[B] = 1
    assert ranges(intake.next()) == {A: (0, 1), B: (0, 1)}, "of one input up to where the other one has come"
    clock.now += IDLE - 0.25
    assert intake.next() is None
    assert intake.next() is None
    assert broker.waits[-1] == 0.25, "until the task goes on"
    clock.now += 0.25
    assert ranges(intake.next()) == {A: (1, 3)}
    broker.ends[A] = 4
    assert ranges(intake.next()) == {A: (3, 4)}, "until something comes there, the empty input is not waited for again"


@pytest.mark.parametrize("records", [300, 30], ids=["by Spark", "whole"])
def test_a_backlog_waits_too(records: int) -> None:
    broker, clock = FakeBroker({A: records, B: 0}), Clock()
    intake = intake_of(broker, clock, batch=1000)
    intake.add({A: 0, B: 0})
    assert [intake.next() for _ in range(3)] == [None, None, None]
    broker.ends[B] = 10
    clock.now = 1.0
    while not (found := ranges(intake.next())):
        clock.now += 0.1
    assert found == {A: (0, 10), B: (0, 10)}
    now = clock.now
    while not (found := ranges(intake.next())):
        clock.now += 0.5
    assert found == {A: (10, records)}
    assert now + IDLE <= clock.now <= now + IDLE + 1


def test_inputs_that_have_passed_each_other_often_are_searched_for_one_moment_each_time() -> None:
    broker, clock = FakeBroker({A: 0, B: 0}, later={B: 5}), Clock()
    intake = intake_of(broker, clock, batch=10_000)
    intake.add({A: 0, B: 0})
    come = {A: 0, B: 0}
    for further_a, further_b in ((200, 100), (10, 300), (500, 90), (1, 400)):
        broker.ends[A] += further_a
        broker.ends[B] += further_b
        while batch := intake.next() or intake.next():
            come |= {each: end for each, (_, end) in ranges(batch).items()}
        last = min(broker.ends[A] - 1, broker.ends[B] + 4)
        assert come == {A: min(broker.ends[A], last + 1), B: min(broker.ends[B], last - 4)}


def test_what_waits_is_not_kept_in_memory_beyond_a_short_backlog() -> None:
    broker, clock = FakeBroker({A: 0, B: 0}), Clock()
    intake = intake_of(broker, clock)
    intake.add({A: 0, B: 0})
    intake.next()
    for _ in range(6):
        broker.ends[A] += 19
        assert intake.next() is None
    assert intake.backlogged
    clock.now = 2 * IDLE
    found = [ranges(intake.next()) for _ in range(4)]
    assert [each for each in found if each] == [{A: (0, 100)}, {A: (100, 114)}]


def test_what_waits_is_read_again_after_a_failure() -> None:
    broker, clock = FakeBroker({A: 0, B: 0}), Clock()
    intake = intake_of(broker, clock)
    intake.add({A: 0, B: 0})
    intake.next()
    broker.ends[A] = 3
    assert intake.next() is None
    intake.restart()
    clock.now = IDLE
    found = [ranges(intake.next()) for _ in range(3)]
    assert [each for each in found if each] == [{A: (0, 3)}]


def test_an_input_that_comes_back_is_waited_for_anew() -> None:
    broker, clock = FakeBroker({A: 0, B: 0}), Clock()
    intake = intake_of(broker, clock)
    intake.add({A: 0, B: 0})
    intake.next()
    intake.next()
    clock.now = IDLE
    intake.remove(frozenset({A, B}))
    intake.add({A: 0, B: 0})
    broker.ends[A] = 1
    assert [intake.next() for _ in range(3)] == [None, None, None]
    clock.now = 2 * IDLE
    assert ranges(intake.next()) == {A: (0, 1)}


def test_without_a_time_nothing_waits() -> None:
    broker = FakeBroker({A: 0, B: 0})
    tasks = [["a", "b"]]
    intake = Intake(broker, broker, IntakeLimits(100, 0.5), broker.read, Inputs(tasks, tasks=tasks))
    intake.add({A: 0, B: 0})
    intake.next()
    broker.ends[A] = 1
    assert ranges(intake.next()) == {A: (0, 1)}
