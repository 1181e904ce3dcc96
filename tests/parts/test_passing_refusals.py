"""Refusals that pass by themselves: a partition's leader, or a group's coordinator, is being chosen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError

from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.client.librdkafka_errors import PASSING, translated
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.types import TopicPartition

PARTITION = TopicPartition("t", 0)


@pytest.mark.parametrize("code", sorted(PASSING), ids=lambda code: KafkaError(code).name())
def test_each_is_an_absence_that_the_runtime_waits_for(code: int) -> None:
    found = translated(KafkaError(code), "reading the offsets of t-0", "b:1")
    assert isinstance(found, BrokerNotAvailableException)
    assert str(found).startswith("reading the offsets of t-0: ")
    assert f"({KafkaError(code).name()})" in str(found)


def test_another_refusal_is_none() -> None:
    found = translated(KafkaError(KafkaError.INVALID_COMMIT_OFFSET_SIZE), "committing", "b:1")
    assert type(found) is StreamsException


@pytest.fixture
def consumer() -> Iterator[GroupConsumer]:
    """A member that has not joined; nobody listens at its address."""
    nobody = {"bootstrap.servers": "127.0.0.1:9"}
    made = GroupConsumer(nobody, Membership("g", "one", "one"), lambda _: None, lambda _: None)
    yield made
    made.close()


@pytest.mark.parametrize("code", [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_commit_that_meets_a_coordinator_that_moves_is_made_again(
    consumer: GroupConsumer, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    answers = iter([KafkaError(code), KafkaError(code), None])
    monkeypatch.setattr(consumer, "_commit_once", lambda *_: next(answers))
    assert consumer.commit({PARTITION: 7}, lambda: False)
    assert next(answers, "used up") == "used up"


def test_a_commit_that_is_refused_for_good_says_why(consumer: GroupConsumer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "_commit_once", lambda *_: KafkaError(KafkaError.OFFSET_METADATA_TOO_LARGE))
    with pytest.raises(StreamsException, match="committing the offsets of 1 partitions"):
        consumer.commit({PARTITION: 7}, lambda: False)
