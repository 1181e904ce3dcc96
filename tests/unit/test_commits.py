"""What is committed, what is stored, and what is given up: the steps of a batch after Spark's."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest

from streams_runtime.batch.stage import StageOutput
from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    ProcessorStateException,
    ProducerException,
    ProducerFencedException,
    SchemaRegistryNotAvailableException,
)
from streams_runtime.kafka.producer.transaction_errors import StaleMemberException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.processing.batch_queue import Batches
from streams_runtime.processing.batch_work import Counters, Held, Outcome
from streams_runtime.processing.commits import ExactlyOnce
from streams_runtime.processing.inputs.batch_size import BatchSize
from streams_runtime.state.store import Updates

ORDERS = TopicPartition("orders", 0)
BATCH = BatchInput((OffsetRange(ORDERS, 0, 5),))
LARGE = BatchInput((OffsetRange(ORDERS, 0, 4000),))
STEPS = ("begin", "send", "flush", "add_offsets", "commit")


class Stage:
    """Batches between fakes that note the order of the steps."""

    def __init__(self, *stores: Mock) -> None:
        self.steps: list[str] = []
        self.now = 100.0
        self.producer, self.consumer, self.intake = Mock(), Mock(), Mock(backlogged=False, size=BatchSize(100))
        for step in (*STEPS, "abort"):
            getattr(self.producer, step).side_effect = lambda *_, step=step: self.steps.append(step)
        self.intake.advance.side_effect = lambda _: self.steps.append("advance")
        self.intake.restart.side_effect = lambda: self.steps.append("restart")
        self.stores = stores
        for store in stores:
            store.write.side_effect = lambda *_: self.steps.append("store")
        self.processor = processor = Mock(apply=self._apply, compute=Mock(return_value=StageOutput()))
        processor.is_due.return_value = False
        sub = Mock(source_topics=("orders",))
        self.spark = ThreadPoolExecutor(1)
        self.batches = Batches(
            Mock(subtopologies=(sub,)),
            Mock(),
            Mock(),
            self.intake,
            ExactlyOnce(self.producer, self.consumer, 30.0),
            processor,
            Counters(recorder=ThreadRecorder(clock=lambda: self.now)),
            self.spark,
            threading.Event(),
            clock=lambda: self.now,
        )

    def work(self) -> list[str]:
        self.batches.work_on(BATCH)
        self.spark.shutdown()
        return self.steps

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def fail_after(self, seconds: float, failure: Exception) -> None:
        self.pass_time(seconds)
        raise failure

    def _apply(self, *arguments: Any) -> Outcome:
        arguments[-2].send()
        return Outcome([Held(store, Updates([], [], []), 7) for store in self.stores], {ORDERS: 5})


def test_stores_are_written_after_the_transaction_holds() -> None:
    assert Stage(Mock(), Mock()).work() == [*STEPS, "store", "store", "advance"]


@pytest.mark.parametrize("backlogged", [False, True])
def test_the_keys_of_a_batch_say_how_large_the_next_one_may_be(backlogged: bool) -> None:
    stage = Stage()
    stage.intake.size, stage.intake.backlogged = BatchSize(1000, 10), backlogged
    stage.processor.compute.return_value = Mock(records=100, keys=100)
    assert stage.work() == ([] if backlogged else [*STEPS, "advance"])
    assert stage.intake.size.limit == 10
    stage.processor.compute.return_value = Mock(records=100, keys=1)
    stage.spark = stage.batches.spark = ThreadPoolExecutor(1)
    stage.work()
    assert stage.intake.size.limit == (10 if backlogged else 1000)  # of a backlog the second one is in work yet


def test_what_is_due_by_the_clock_is_a_batch_that_ends_where_the_last_one_did() -> None:
    stage = Stage(Mock())
    stage.batches.tasks.running.return_value = {0: Mock(inputs=frozenset({ORDERS}))}  # type: ignore[attr-defined]
    stage.intake.positions = {ORDERS: 5, TopicPartition("other", 0): 9}
    stage.processor.is_due.return_value = True
    applied: list[Any] = []
    stage.processor.apply = lambda *given: applied.append(given[2]) or stage._apply(*given)
    stage.batches.work_on(None)
    assert stage.steps == [*STEPS, "store", "advance"]
    assert [(each.ranges, each.has_records) for each in applied] == [((OffsetRange(ORDERS, 5, 5),), False)]
    stage.spark.shutdown()


def test_nothing_is_called_by_the_clock_once_a_batch_was_given_up() -> None:
    stage = Stage(Mock())
    stage.processor.is_due.side_effect = lambda _, tasks: bool(tasks)
    stage.batches.tasks.running.return_value = {0: Mock(inputs=frozenset({ORDERS}))}  # type: ignore[attr-defined]
    stage.producer.add_offsets.side_effect = StaleMemberException("old")
    assert stage.work() == ["begin", "send", "flush", "abort", "restart"]


@pytest.mark.parametrize("step", STEPS[1:])
def test_a_step_that_fails_aborts_the_transaction_and_stores_nothing(step: str) -> None:
    stage = Stage(Mock())
    getattr(stage.producer, step).side_effect = BrokerNotAvailableException("away")
    with pytest.raises(BrokerNotAvailableException):
        stage.work()
    assert stage.steps == [*STEPS[: STEPS.index(step)], "abort"]


def test_a_member_with_an_old_epoch_takes_part_in_the_group_and_reads_the_batch_again() -> None:
    stage = Stage(Mock())
    stage.producer.add_offsets.side_effect = StaleMemberException("old")
    assert stage.work() == ["begin", "send", "flush", "abort", "restart"]
    stage.consumer.poll.assert_called_once()


@pytest.mark.parametrize("failure", [ProducerFencedException("fenced"), BrokerNotAvailableException("timed out")])
def test_a_batch_that_outlasts_its_transaction_comes_again_smaller_and_the_thread_says_why(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Its later stages took 60 s where 30 s are allowed: the same batch would time out for ever."""
    stage = Stage(Mock())
    stage.intake.size = BatchSize(1_000_000)
    stage.producer.commit.side_effect = lambda: stage.fail_after(60.0, failure)
    with pytest.raises(type(failure)):
        stage.batches.work_on(LARGE)
    assert stage.intake.size.limit == 1000
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "batch of 4000 records took 60.0 s" in said
    assert "transaction.timeout.ms" in said
    assert "1000 records" in said
    stage.spark.shutdown()


@pytest.mark.parametrize(
    ("seconds", "failure"),
    [(29.0, BrokerNotAvailableException("away")), (60.0, SchemaRegistryNotAvailableException("away"))],
)
def test_a_batch_that_fails_for_another_reason_keeps_its_size(seconds: float, failure: Exception) -> None:
    stage = Stage(Mock())
    stage.producer.flush.side_effect = lambda: stage.fail_after(seconds, failure)
    with pytest.raises(BrokerNotAvailableException):
        stage.work()
    assert stage.intake.size.limit == 100


def test_batches_grow_again_slowly_while_they_take_half_of_their_time(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(Mock())
    stage.intake.size = size = BatchSize(1_000_000)
    size.overran(4000, 60.0, 30.0)
    stage.producer.commit.side_effect = lambda: stage.pass_time(14.0)
    stage.batches.work_on(LARGE)
    assert size.limit == 1100
    stage.producer.commit.side_effect = lambda: stage.pass_time(16.0)
    stage.batches.work_on(LARGE)
    assert size.limit == 1100
    assert not caplog.records
    stage.spark.shutdown()


CHANGELOG = TopicPartition("app-totals-changelog", 0)


def changed(stage: Stage, answer: Any) -> None:
    """Let the batch change a store whose changelog's end has to be asked for; `answer` is what comes of that."""
    (store,) = stage.stores
    store.changelog = CHANGELOG
    updates = Updates([b"k"], [b"v"], [1])
    stage.processor.apply = lambda *arguments: (
        arguments[-2].send() or Outcome([Held(store, updates, None)], {ORDERS: 5})
    )
    admin: Any = stage.batches.admin

    def ends(*_: object) -> Any:
        stage.steps.append("ends")
        if isinstance(answer, Exception):
            raise answer
        return answer

    admin.end_offsets.side_effect = ends


WITH_ENDS = ("begin", "send", "flush", "ends", "add_offsets", "commit")
"""After the commit others may have the task, and write the changelog."""


@pytest.mark.parametrize(("ends", "offset"), [({CHANGELOG: 9}, 9), ({}, None)])
def test_changelogs_are_asked_for_their_ends_before_the_commit_and_one_that_is_gone_leaves_its_store_where_it_was(
    ends: dict[TopicPartition, int], offset: int | None
) -> None:
    stage = Stage(Mock())
    changed(stage, ends)
    assert stage.work() == [*WITH_ENDS, "store", "advance"]
    assert stage.stores[0].write.call_args.args[1] == offset, "None leaves the store's offset as it is"
    assert stage.batches.counters.batches == 1


@pytest.mark.parametrize("failure", [ConfigException("no right"), BrokerNotAvailableException("told to stop")])
def test_whatever_keeps_the_ends_of_changelogs_from_being_known_keeps_the_batch_from_its_commit(
    failure: Exception,
) -> None:
    stage = Stage(Mock())
    stage.batches.stopping.set()
    changed(stage, failure)
    with pytest.raises(type(failure)):
        stage.work()
    assert stage.steps == ["begin", "send", "flush", "ends", "abort"]
    assert not stage.stores[0].write.called


def test_a_store_that_can_not_be_written_keeps_no_other_from_what_is_committed() -> None:
    stage = Stage(Mock(), Mock())
    stage.stores[0].write.side_effect = ProcessorStateException("full")
    with pytest.raises(ProcessorStateException):
        stage.work()
    assert stage.steps == [*STEPS, "store", "advance"]


def test_the_time_of_a_batch_is_told_apart_by_what_it_went_into() -> None:
    stage = Stage(Mock())
    stage.stores[0].name = "totals"

    def apply(*arguments: Any) -> Outcome:
        stage.pass_time(2.0)
        return Outcome([Held(stage.stores[0], Updates([b"k"], [b"v"], [1]), 7)], {ORDERS: 5}, records=5)

    stage.processor.apply = apply
    stage.producer.flush.side_effect = lambda: stage.pass_time(3.0)
    stage.work()
    recorder = stage.batches.counters.recorder
    took = {name: sampled.reading(recorder.clock()).total for name, sampled in recorder.stages.items()}
    assert took == {"spark": 0.0, "process": 2.0, "commit": 3.0, "changelog-ends": 0.0, "store": 0.0}
    assert recorder.blocked == 3.0
    now = recorder.clock()
    assert (recorder.process.reading(now).total, recorder.process_records.reading(now).total) == (2.0, 5)
    assert (recorder.commit.reading(now).count, recorder.commit.reading(now).total) == (1, 3.0)
    assert recorder.written == {"totals": 1}


def test_waiting_for_brokers_counts_though_the_commit_or_the_ends_of_changelogs_fail() -> None:
    stage = Stage(Mock())
    stage.producer.flush.side_effect = lambda: stage.fail_after(3.0, ProducerException("lost"))
    with pytest.raises(ProducerException):
        stage.batches.work_on(BATCH)
    recorder = stage.batches.counters.recorder
    assert recorder.blocked == 3.0
    stage.producer.flush.side_effect = None
    changed(stage, None)
    admin: Any = stage.batches.admin
    admin.end_offsets.side_effect = lambda *_: stage.fail_after(2.0, ConfigException("no right"))
    with pytest.raises(ConfigException):
        stage.work()
    assert recorder.blocked == 5.0


def test_a_batch_that_is_not_committed_counts_as_no_commit() -> None:
    stage = Stage(Mock())
    stage.producer.add_offsets.side_effect = StaleMemberException("old epoch")
    stage.work()
    recorder = stage.batches.counters.recorder
    assert recorder.commit.reading(recorder.clock()).count == 0
    assert recorder.written == {}
