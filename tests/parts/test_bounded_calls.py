"""Calls into librdkafka have limits that hold, and what they leave behind is used by nobody."""

from __future__ import annotations

import logging
import threading
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError
from waiting import eventually

from streams_runtime.errors import BrokerNotAvailableException, ProducerException, TaskMigratedException
from streams_runtime.kafka.client.bounded import OverdueError, bounded
from streams_runtime.kafka.producer import batch_producer as producers
from streams_runtime.kafka.producer import transactions
from streams_runtime.kafka.producer.transactions import TransactionalProducer
from streams_runtime.kafka.producer.uncertain_requests import Doubts


class Hanging(TransactionalProducer):
    """Its librdkafkas are fakes, and hang where they are told to until `released`."""

    def __init__(self, should_stop: Any = lambda: False) -> None:
        self.made: list[Mock] = []
        self.released = threading.Event()
        self.came_back = threading.Event()
        super().__init__({"bootstrap.servers": "kafka:9092"}, "test", "app-i-1", should_stop)

    def _made(self) -> Any:
        super()._made()
        self.made.append(Mock(flush=Mock(return_value=0), poll=Mock(return_value=0)))
        return self.made[-1]

    def hang(self, *_: object) -> None:
        self.released.wait()
        self.came_back.set()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "_CALL_SECONDS", 0.05)
    monkeypatch.setattr(producers, "_FREE_TIMEOUT", 0.05)


@pytest.fixture
def producer() -> Any:
    made = Hanging()
    made.begin()
    yield made
    made.released.set()


def test_what_a_bounded_call_returns_or_raises_comes_out_of_it() -> None:
    assert bounded(lambda: 5, 60) == 5
    with pytest.raises(KeyError, match="k"):
        bounded(lambda: {}["k"], 60)


def test_a_call_that_does_not_come_back_is_left_to_itself() -> None:
    go_on, done = threading.Event(), threading.Event()
    with pytest.raises(OverdueError):
        bounded(lambda: (go_on.wait(), done.set()), 0.05)
    with pytest.raises(OverdueError):
        bounded(go_on.wait, 1e9, give_up=lambda: True)
    go_on.set()
    assert done.wait(60)


def test_a_hang_before_the_commit_is_no_commit_and_the_producer_is_used_no_more(producer: Hanging) -> None:
    producer.made[0].send_offsets_to_transaction.side_effect = producer.hang
    with pytest.raises(TaskMigratedException, match=r"abandoned. It was not committed; the tasks are"):
        producer.add_offsets({}, None)
    producer.abort()
    producer.begin()
    assert len(producer.made) == 2
    for step in ("abort_transaction", "purge", "flush", "close"):
        getattr(producer.made[0], step).assert_not_called()
    producer.commit()


def test_a_hang_in_the_commit_leaves_open_whether_it_holds(producer: Hanging) -> None:
    producer.made[0].commit_transaction.side_effect = producer.hang
    with pytest.raises(TaskMigratedException, match="Whether it was committed is not known"):
        producer.commit()


@pytest.mark.parametrize("step", ["init_transactions", "begin_transaction", "abort_transaction"])
def test_a_hang_anywhere_else_ends_as_well(producer: Hanging, step: str) -> None:
    getattr(producer.made[0], step).side_effect = producer.hang
    if step == "abort_transaction":
        producer.abort()
    else:
        producer._initialised, producer._open = False, False
        with pytest.raises(TaskMigratedException):
            producer.begin()
    producer.begin()
    assert len(producer.made) == 2


def test_a_stop_ends_a_hang_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "_CALL_SECONDS", 1e9)
    monkeypatch.setattr(transactions, "_GRACE", 0.05)
    stopping = threading.Event()
    producer = Hanging(stopping.is_set)
    producer.begin()
    producer.made[0].send_offsets_to_transaction.side_effect = producer.hang
    stopping.set()
    with pytest.raises(ProducerException, match="stopped while"):
        producer.add_offsets({}, None)
    producer.close()
    producer.made[0].abort_transaction.assert_not_called()
    producer.released.set()


def test_a_producer_that_can_not_be_freed_is_left_and_told_of(
    producer: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    producer.abort()
    producer.made[0].purge.side_effect = lambda **_: producer.hang()
    with caplog.at_level(logging.WARNING):
        producer.close()
    assert "test was not freed within" in caplog.text
    producer.released.set()
    assert producer.came_back.wait(60)


def test_what_an_abandoned_producer_reports_late_is_not_the_next_ones_failure() -> None:
    producer = Hanging()
    first = producer._failures
    producer._spent = True
    producer.begin()
    first.note(KafkaError(KafkaError._PURGE_QUEUE), Mock(partition=Mock(return_value=0)))
    assert first.count == 1
    producer.flush()
    producer.commit()


LINE = "[thrd:TxnCoordinator]: TxnCoordinator/1: Disconnected: connection reset (after 6012ms in state %s) (_TRANSPORT)"


@pytest.mark.parametrize(
    ("facility", "text", "doubt"),
    [
        ("FAIL", LINE % "UP", True),
        ("FAIL", LINE % "UP" + ": identical to last error: error log suppressed", True),
        ("FAIL", LINE % "REAUTH", True),
        ("FAIL", LINE % "CONNECT", False),
        ("FAIL", LINE % "APIVERSION_QUERY", False),
        ("FAIL", "[thrd:a:1/bootstrap]: a:1/bootstrap: Decommissioning (after 1ms in state UP)", False),
        ("FAIL", "[thrd:a:1/bootstrap]: b:1/2: Disconnected (after 1ms in state UP)", True),
        ("FAIL", "something that nobody has seen", True),
        ("REQTMOUT", "[thrd:a:1/1]: a:1/1: Timed out 1 in-flight, 0 retry-queued requests", True),
        ("STATE", LINE % "UP", False),
    ],
)
def test_a_lost_answer_is_a_doubt_and_a_connection_that_was_never_up_is_none(
    facility: str, text: str, doubt: bool
) -> None:
    doubts = Doubts()
    doubts.log(10, "%s [%s] %s", facility, "rdkafka#producer-1", text)
    assert doubts.any is doubt


def test_a_doubt_gives_the_next_transaction_another_producer_and_only_that(producer: Hanging) -> None:
    producer.commit()
    producer.begin()
    producer.commit()
    assert len(producer.made) == 1
    producer.begin()

    def lose(*_: object) -> None:
        producer._doubts.log(10, "%s [%s] %s", "FAIL", "p", LINE % "UP")

    # It comes out of the last poll before the next transaction.
    producer.made[0].poll.side_effect = lambda *_: lose() or 0
    producer.commit()
    assert len(producer.made) == 1
    producer.begin()
    assert len(producer.made) == 2
    eventually(lambda: producer.made[0].purge.called)
    producer.commit()
    producer.begin()
    assert len(producer.made) == 2


LEFT = "[thrd:a:1/2]: a:1/2: Decommissioning this broker (after 692ms in state INIT) (_DESTROY_BROKER)"


def leave(producer: Hanging, text: str = LEFT) -> None:
    producer._doubts.log(10, "%s [%s] %s", "FAIL", "p", text)


def test_offsets_are_not_waited_for_when_a_broker_has_left_and_the_batch_is_processed_again(
    producer: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_CALL_SECONDS", 1e9)
    monkeypatch.setattr(transactions, "_LEFT_SECONDS", 0.05)
    producer.made[0].send_offsets_to_transaction.side_effect = producer.hang
    # The line comes out of a poll while the call waits.
    producer.made[0].poll.side_effect = lambda *_: leave(producer) or 0
    with pytest.raises(BrokerNotAvailableException, match=r"a broker has left .* processed again"):
        producer.add_offsets({}, None)
    producer.abort()
    producer.made[0].abort_transaction.assert_not_called()
    producer.begin()
    assert len(producer.made) == 2


def test_a_broker_that_left_ends_no_other_call_and_no_offsets_that_go_through(
    producer: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_LEFT_SECONDS", 0.0)
    leave(producer)
    producer.add_offsets({}, None)
    producer.made[0].commit_transaction.side_effect = producer.hang
    with pytest.raises(TaskMigratedException, match="Whether it was committed is not known"):
        producer.commit()


def test_an_address_of_bootstrap_servers_that_is_given_up_is_no_broker_that_left(producer: Hanging) -> None:
    leave(producer, LEFT.replace("/2", "/bootstrap"))
    assert producer._doubts.left_at is None
    assert not producer._doubts.any
    leave(producer)
    assert producer._doubts.left_at is not None
    assert producer._doubts.any, "the next transaction has another producer"


def test_an_abandoned_producer_is_listened_to_until_its_call_comes_back(producer: Hanging) -> None:
    producer.made[0].send_offsets_to_transaction.side_effect = producer.hang
    with pytest.raises(TaskMigratedException):
        producer.add_offsets({}, None)
    polled = producer.made[0].poll.call_count
    eventually(lambda: producer.made[0].poll.call_count > polled + 2, "its lines are taken in")
    producer.released.set()
    eventually(lambda: not [each for each in threading.enumerate() if each.name.endswith("-abandoned")], "the end")
