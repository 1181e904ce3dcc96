"""What tests read of a topic is all that it holds, and what they follow is all that came since."""

from __future__ import annotations

import json
from typing import Any

import clients
import pytest
from confluent_kafka import Producer


class Topic:
    """A topic of three partitions on the broker that librdkafka plays."""

    def __init__(self) -> None:
        self._producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "played", "log_level": 0})
        (broker,) = self._producer.list_topics(timeout=30).brokers.values()
        self.bootstrap = f"{broker.host}:{broker.port}"

    def write(self, partition: int, *pairs: tuple[str, Any]) -> None:
        for key, value in pairs:
            self._producer.produce("t", None if value is None else json.dumps(value), key, partition)
        self._producer.flush()


@pytest.fixture
def topic() -> Topic:
    return Topic()


def test_all_partitions_are_read_one_after_the_other(topic: Topic) -> None:
    topic.write(2, ("c", 3))
    topic.write(0, ("a", 1), ("b", 2))
    found = [(each.partition(), each.offset(), each.key()) for each in clients.read(topic.bootstrap, "t")]
    assert found == [(0, 0, b"a"), (0, 1, b"b"), (2, 0, b"c")]


def test_many_messages_are_all_read(topic: Topic) -> None:
    count = 2 * clients._AT_ONCE + 17
    topic.write(0, *((str(number), number) for number in range(count)))
    topic.write(1, ("x", 0))
    assert len(clients.read(topic.bootstrap, "t")) == count + 1


def test_what_is_followed_has_the_last_value_of_each_key(topic: Topic) -> None:
    topic.write(0, ("a", 1), ("b", 1))
    values = clients.following_values(topic.bootstrap, "t")
    assert values() == {"a": 1, "b": 1}
    assert values() == {"a": 1, "b": 1}
    topic.write(0, ("b", None), ("a", 2))
    topic.write(1, ("c", 3))
    assert values() == {"a": 2, "b": None, "c": 3}


def test_what_was_read_is_not_read_again(topic: Topic) -> None:
    topic.write(0, ("a", 1), ("b", 1))
    follower = clients.Follower(topic.bootstrap, "t", committed=False)
    assert len(follower.read_on()) == 2
    topic.write(0, ("a", 2))
    assert [(each.offset(), each.value()) for each in follower.read_on()] == [(2, b"2")]
    assert follower.read_on() == []
