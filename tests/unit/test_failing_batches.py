"""A thread's batch of which a record fails: parts with a commit each, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from streams_runtime.batch.columns import ORDER_TIME
from streams_runtime.batch.stage import StageOutput
from streams_runtime.errors import FailedProcessingException, StreamsException
from streams_runtime.kafka.producer.transaction_errors import StaleMemberException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.processing.batch_processor import BatchProcessor
from streams_runtime.processing.batch_queue import Batches
from streams_runtime.processing.batch_work import Counters, Outcome
from streams_runtime.processing.commits import ExactlyOnce
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.processing.failures.isolation import isolation_of
from streams_runtime.processing.inputs.batch_size import BatchSize

ORDERS = TopicPartition("orders", 0)
BATCH = BatchInput((OffsetRange(ORDERS, 0, 8),))
NOTHING = pa.table({"_topic": [], "_partition": [], "_offset": [], ORDER_TIME: []})


class Stage:
    """Batches of one partition, whose offsets `bad` fail, between fakes that note the order of the steps."""

    def __init__(self, *bad: int, of_a_record: bool = True) -> None:
        self.steps: list[str] = []
        self.bad, self.of_a_record = bad, of_a_record
        self.producer, self.consumer, self.intake = Mock(), Mock(), Mock(backlogged=False, size=BatchSize(100))
        for step in ("begin", "commit", "abort"):
            getattr(self.producer, step).side_effect = lambda *_, step=step: self.steps.append(step)
        self.intake.advance.side_effect = lambda offsets: self.steps.append(f"at {offsets[ORDERS]}")
        self.intake.restart.side_effect = lambda: self.steps.append("restart")
        self.spark = ThreadPoolExecutor(1)
        processor = Mock(compute=Mock(return_value=StageOutput()))
        processor.apply.side_effect = self._apply
        processor.is_due.return_value = False
        processor.isolation.side_effect = self._isolation
        processor.leave_out.side_effect = self._leave_out
        self.batches = Batches(
            Mock(subtopologies=(Mock(source_topics=("orders",)),)),
            Mock(),
            Mock(),
            self.intake,
            ExactlyOnce(self.producer, self.consumer, 30.0),
            processor,
            Counters(recorder=ThreadRecorder()),
            self.spark,
            threading.Event(),
        )

    def to_the_end(self) -> list[str]:
        for _ in range(50):
            if not self.batches.isolates:
                return self.steps
            self.batches.work_on(None)
        raise AssertionError("it does not come to an end")

    def _apply(self, *arguments: Any) -> Outcome:
        (part,) = arguments[2].ranges
        self.steps.append(f"{part.start}-{part.end}")
        if any(part.start <= each < part.end for each in self.bad):
            raise FailedProcessingException("a step failed", "correct it", self.of_a_record)
        return Outcome(offsets={ORDERS: part.end})

    def _isolation(self, _: Any, batch: BatchInput, error: FailedProcessingException) -> Any:
        return isolation_of(batch, NOTHING, ()) if error.of_a_record else None

    def _leave_out(self, _: Any, batch: BatchInput, error: Any, producer: Any) -> Outcome:
        assert producer is self.producer
        self.steps.append(f"letter {batch.ranges[0].start}")
        return Outcome(offsets={ORDERS: batch.ranges[0].end})


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage(2)
    yield made
    made.spark.shutdown()


def test_parts_are_committed_one_by_one_and_the_letter_with_its_offset(stage: Stage) -> None:
    stage.batches.work_on(BATCH)
    assert stage.steps == ["begin", "0-8", "abort", "restart"]
    del stage.steps[:]
    assert stage.to_the_end() == [
        *("begin", "0-4", "abort"),
        *("begin", "0-2", "commit", "at 2"),
        *("begin", "2-3", "abort"),
        *("begin", "letter 2", "commit", "at 3"),
        *("begin", "3-4", "commit", "at 4"),
        *("begin", "4-6", "commit", "at 6"),
        *("begin", "6-8", "commit", "at 8"),
    ]


@pytest.mark.parametrize("end", ["give_up", "finish"])
def test_a_rebalance_or_a_pause_ends_it_and_what_is_left_is_read_again(stage: Stage, end: str) -> None:
    stage.batches.work_on(BATCH)
    getattr(stage.batches, end)()
    assert not stage.batches.isolates
    assert stage.steps[-1] == "restart"


@pytest.mark.parametrize("steps", [2, 3], ids=["in a part", "at a letter"])
def test_a_commit_that_is_not_the_members_any_more_ends_it_where_it_is(stage: Stage, steps: int) -> None:
    stage.batches.work_on(BATCH)
    for _ in range(steps - 1):
        stage.batches.work_on(None)
    stage.producer.add_offsets.side_effect = StaleMemberException("old")
    stage.batches.work_on(None)
    assert not stage.batches.isolates
    assert stage.steps[-2:] == ["abort", "restart"]
    assert "at 3" not in stage.steps


def test_what_no_record_is_to_blame_for_ends_the_thread() -> None:
    stage = Stage(2, of_a_record=False)
    with pytest.raises(FailedProcessingException):
        stage.batches.work_on(BATCH)
    assert not stage.batches.isolates
    stage.spark.shutdown()


def test_an_error_of_another_kind_in_a_part_ends_the_thread(stage: Stage) -> None:
    stage.batches.work_on(BATCH)
    stage.batches.processor.apply.side_effect = StreamsException("the total left the range")  # type: ignore[attr-defined]
    with pytest.raises(StreamsException, match="the total"):
        stage.batches.work_on(None)
    assert stage.steps[-1] == "abort"


@pytest.mark.parametrize(
    ("policy", "error", "isolates"),
    [
        ("continue", FailedProcessingException("a", "b"), True),
        ("deadLetter", FailedProcessingException("a", "b"), True),
        ("fail", FailedProcessingException("a", "b"), False),
        ("continue", FailedProcessingException("a", "b", of_a_record=False), False),
        ("continue", StreamsException("the disk is full"), False),
        ("continue", MemoryError(), False),
    ],
)
def test_the_policy_and_the_class_of_the_error_decide(policy: str, error: Exception, isolates: bool) -> None:
    runner = Mock(order_times=Mock(return_value=NOTHING))
    made = BatchProcessor({0: runner}, ErrorPolicy("fail"), Counters(), failed=ErrorPolicy(policy, "letters"))
    found = made.isolation(Mock(id=0, nodes=()), BATCH, error)
    assert (found is not None) == isolates
