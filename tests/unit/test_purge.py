"""Deleting what is processed from repartition topics, and brokers that refuse it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import cast

import pytest
from confluent_kafka import KafkaError

from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.admin import Admin
from streams_runtime.kafka.foreign import translated
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.tasks.purge import Purge

BETWEEN = TopicPartition("between", 0)
NO_RIGHT = translated(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), "deleting processed records", "b:1")
AWAY = BrokerNotAvailableException("away")


@dataclass
class Brokers:
    """Refuse with the next of these; None: they delete."""

    answers: list[StreamsException | None]
    asked: list[dict[TopicPartition, int]] = field(default_factory=list)

    def delete_records(self, before: dict[TopicPartition, int]) -> None:
        self.asked.append(before)
        refusal = self.answers.pop(0)
        if refusal is not None:
            raise refusal


def warnings_of(caplog: pytest.LogCaptureFixture, *answers: StreamsException | None) -> list[str]:
    now, brokers = [100.0], Brokers(list(answers))
    purge = Purge(cast("Admin", brokers), [BETWEEN.topic], lambda: now[0])
    for _ in answers:
        now[0] += 30
        purge.behind({BETWEEN: 4})
    assert brokers.asked == [{BETWEEN: 4}] * len(answers), "asked again each time"
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_without_the_right_to_delete_the_application_goes_on_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """As in Kafka Streams, which tries again with the next commit."""
    (said,) = warnings_of(caplog, NO_RIGHT, NO_RIGHT, NO_RIGHT)
    assert "TOPIC_AUTHORIZATION_FAILED" in said
    assert "stay in the repartition topics and take space" in said


def test_a_right_that_is_given_and_taken_again_is_said_anew(caplog: pytest.LogCaptureFixture) -> None:
    assert len(warnings_of(caplog, NO_RIGHT, None, NO_RIGHT)) == 2


def test_brokers_that_are_away_are_said_to_be_each_time(caplog: pytest.LogCaptureFixture) -> None:
    assert [said.rpartition(". ")[2] for said in warnings_of(caplog, AWAY, AWAY)] == [
        "The records are deleted later"
    ] * 2
