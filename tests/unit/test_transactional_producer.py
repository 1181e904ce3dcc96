"""The steps of a transaction against a librdkafka that fails on purpose."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams_runtime.errors import (
    BrokerNotAvailableException,
    ProducerException,
    ProducerFencedException,
    TaskMigratedException,
)
from streams_runtime.kafka.producer import transactions
from streams_runtime.kafka.producer.transactions import TransactionalProducer


class Failing(TransactionalProducer):
    """Its librdkafkas are fakes; `made` holds all of them, the present one last."""

    def __init__(self) -> None:
        self.made: list[Mock] = []
        super().__init__({"bootstrap.servers": "kafka:9092"}, "test", "app-i-1")

    def _made(self) -> Any:
        self.made.append(Mock(flush=Mock(return_value=0), poll=Mock(return_value=0)))
        return self.made[-1]


def error(code: int, **how: bool) -> KafkaException:
    return KafkaException(KafkaError(code, "why", **how))


def test_a_step_that_times_out_is_taken_again_until_it_is_done() -> None:
    producer = Failing()
    slow = [error(KafkaError._TIMED_OUT, retriable=True)] * 3
    producer.made[0].init_transactions.side_effect = [*slow, None]
    producer.made[0].commit_transaction.side_effect = [*slow, None]
    producer.begin()
    producer.commit()
    assert producer.made[0].commit_transaction.call_count == 4
    assert len(producer.made) == 1


def test_a_start_of_transactions_that_nobody_answers_is_asked_by_another_producer_and_longer_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, answering = [0.0], [False]
    monkeypatch.setattr(transactions, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def start(_seconds: float) -> None:
        now[0] += 1
        if not answering[0]:
            raise error(KafkaError._TIMED_OUT, retriable=True)

    class Silent(Failing):
        def _made(self) -> Any:
            made = super()._made()
            made.init_transactions.side_effect = start
            return made

    producer = Silent()
    for answers in (False, False, False, False, True, False):
        answering[0] = answers
        with nullcontext() if answers else pytest.raises(BrokerNotAvailableException, match="start of transactions"):
            producer.initialise()
        producer._spent = True
    assert [each.init_transactions.call_count for each in producer.made] == [3, 5, 9, 9, 1, 3]


@pytest.mark.parametrize(
    "code", [KafkaError.INVALID_PRODUCER_EPOCH, KafkaError._TIMED_OUT, KafkaError._STATE, KafkaError.UNKNOWN]
)
def test_a_commit_without_a_clear_answer_takes_the_tasks_from_the_thread(code: int) -> None:
    producer = Failing()
    producer.begin()
    producer.made[0].commit_transaction.side_effect = error(code, txn_requires_abort=True)
    with pytest.raises(TaskMigratedException, match="not known"):
        producer.commit()
    producer.abort()
    producer.made[0].abort_transaction.assert_not_called()


def test_a_transaction_that_failed_is_given_up_with_its_producer() -> None:
    producer = Failing()
    producer.begin()
    producer.made[0].send_offsets_to_transaction.side_effect = error(
        KafkaError.COORDINATOR_NOT_AVAILABLE, txn_requires_abort=True
    )
    with pytest.raises(BrokerNotAvailableException):
        producer.add_offsets({}, None)
    producer.abort()
    producer.begin()
    assert len(producer.made) == 2
    producer.made[1].init_transactions.assert_called_once()
    producer.made[1].begin_transaction.assert_called_once()


def test_what_befell_a_record_is_told_by_the_next_step() -> None:
    producer = Failing()
    producer.begin()
    producer.made[0].produce.side_effect = error(KafkaError._STATE)
    producer.send("t", [b"k"], [b"v"], [1])
    producer.flush()
    producer.made[0].send_offsets_to_transaction.side_effect = error(KafkaError._FENCED, fatal=True)
    with pytest.raises(ProducerFencedException):
        producer.add_offsets({}, None)


@pytest.mark.parametrize("echoes", [["compact"], ["compact", "compact", "by-rest", "other"]])
def test_a_record_that_is_refused_is_told_though_the_report_on_those_it_took_along_comes_first(
    echoes: list[str],
) -> None:
    producer = Failing()
    producer.begin()
    failures = producer._failures
    for topic in echoes:
        failures.note(KafkaError(KafkaError._PURGE_QUEUE, "purged"), report(topic))
    failures.note(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large"), report("small"))
    failures.note(KafkaError(KafkaError._PURGE_INFLIGHT, "purged"), report("late"))
    with pytest.raises(ProducerException, match=rf"{len(echoes) + 2} records .*: small-0: too large") as raised:
        producer.flush()
    assert raised.value.refusing_topic == "small"
    assert "compact" not in str(raised.value)
    assert "late" not in str(raised.value)


def test_of_records_that_were_left_out_for_a_reason_that_is_not_known_the_next_step_says_why() -> None:
    producer = Failing()
    producer.begin()
    producer._failures.note(KafkaError(KafkaError._PURGE_QUEUE, "purged"), report("compact"))
    producer.flush()
    producer.made[0].send_offsets_to_transaction.side_effect = error(KafkaError._TIMED_OUT, txn_requires_abort=True)
    with pytest.raises(BrokerNotAvailableException, match=r"offsets of 0 partitions .*why"):
        producer.add_offsets({}, b"")


def report(topic: str) -> Mock:
    return Mock(topic=lambda: topic, partition=lambda: 0)
