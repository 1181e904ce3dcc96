"""Deleting what is processed from repartition topics, and brokers that refuse it."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.admin.pending_requests import Deletion
from streams_runtime.kafka.client.librdkafka_errors import translated
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processing.purge import Purge

BETWEEN = TopicPartition("between", 0)
NO_RIGHT = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
SILENT = KafkaException(KafkaError(KafkaError._TIMED_OUT))
CLOSED = BrokerNotAvailableException("closed")


@dataclass
class Brokers:
    """Refuse with the next of these; None: they delete."""

    answers: list[BaseException | None]
    asked: list[dict[TopicPartition, int]] = field(default_factory=list)
    slow: Future[Any] | None = None
    refreshed: int = 0

    def delete_records(self, before: dict[TopicPartition, int]) -> Deletion:
        self.asked.append(before)
        if self.slow is not None:
            return Deletion({BETWEEN: self.slow}, translated_now)
        answer: Future[Any] = Future()
        failure = self.answers.pop(0)
        if failure is None:
            answer.set_result(None)
        elif isinstance(failure, StreamsException):
            raise failure
        else:
            answer.set_exception(failure)
        return Deletion({BETWEEN: answer}, translated_now)

    def refresh(self) -> None:
        self.refreshed += 1


def translated_now(failure: BaseException) -> StreamsException:
    return translated(failure, "deleting processed records", "b:1")


def warnings_of(caplog: pytest.LogCaptureFixture, *answers: BaseException | None) -> list[str]:
    now, brokers = [100.0], Brokers(list(answers))
    purge = Purge(cast("Admin", brokers), [BETWEEN.topic], lambda: now[0])
    for _ in answers:
        now[0] += 30
        purge.behind({BETWEEN: 4})
    purge.behind({BETWEEN: 4})
    assert brokers.asked == [{BETWEEN: 4}] * len(answers), "asked again each time"
    assert brokers.refreshed == answers.count(SILENT)
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_without_the_right_to_delete_the_application_goes_on_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """As in Kafka Streams, which tries again with the next commit."""
    (said,) = warnings_of(caplog, NO_RIGHT, NO_RIGHT, NO_RIGHT)
    assert "TOPIC_AUTHORIZATION_FAILED" in said
    assert "stay in the repartition topics and take space" in said


def test_a_right_that_is_given_and_taken_again_is_said_anew(caplog: pytest.LogCaptureFixture) -> None:
    assert len(warnings_of(caplog, NO_RIGHT, None, NO_RIGHT)) == 2


@pytest.mark.parametrize("away", [SILENT, CLOSED])
def test_brokers_that_are_away_are_said_to_be_each_time(caplog: pytest.LogCaptureFixture, away: BaseException) -> None:
    assert [said.rpartition(". ")[2] for said in warnings_of(caplog, away, away)] == [
        "The records are deleted later"
    ] * 2


@pytest.mark.parametrize("code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_what_passes_by_itself_is_not_said(caplog: pytest.LogCaptureFixture, code: int) -> None:
    assert warnings_of(caplog, KafkaException(KafkaError(code)), None) == []


def test_brokers_that_do_not_answer_are_not_waited_for_nor_asked_meanwhile() -> None:
    now, brokers = [100.0], Brokers([], slow=Future())
    purge = Purge(cast("Admin", brokers), [BETWEEN.topic], lambda: now[0])
    for _ in range(3):
        now[0] += 30
        purge.behind({BETWEEN: 4})
    assert brokers.asked == [{BETWEEN: 4}]
    assert brokers.slow is not None
    brokers.slow.set_result(None)
    purge.behind({BETWEEN: 7})
    assert brokers.asked == [{BETWEEN: 4}, {BETWEEN: 7}]


def test_nothing_is_asked_where_nothing_is_processed() -> None:
    now, brokers = [100.0], Brokers([])
    purge = Purge(cast("Admin", brokers), [BETWEEN.topic], lambda: now[0])
    now[0] += 30
    purge.behind({TopicPartition("other", 0): 4})
    assert brokers.asked == []
