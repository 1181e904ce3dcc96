"""Transactions on a real broker: what is committed whole, what is given up, and who is fenced."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clients import read

from streams_runtime.errors import BrokerNotAvailableException, ProducerException, ProducerFencedException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.producer.transaction_errors import StaleMemberException
from streams_runtime.kafka.producer.transactions import TransactionalProducer
from streams_runtime.kafka.types import TopicPartition, TopicSpec

pytestmark = pytest.mark.integration


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    found = Admin(client_properties(broker.bootstrap_servers, {}))
    yield found
    found.close()


class Side:
    """A member of a group with a producer, as a stream thread has them."""

    def __init__(self, address: str, group: str, name: str, **config: int) -> None:
        self.group = group
        self.has: frozenset[TopicPartition] = frozenset()
        self.consumer = GroupConsumer(
            client_properties(address, {}, exactly_once=True), Membership(group, name, name), self._got, self._lost
        )
        self.producer = TransactionalProducer(
            client_properties(address, config, exactly_once=True), name, f"{group}-{name}"
        )

    def join(self, topic: str) -> Side:
        self.consumer.subscribe([topic])
        return self

    def begin(self, topic: str, value: bytes) -> None:
        self.producer.begin()
        self.producer.send(topic, [b"k"], [value], [1], 0)
        self.producer.flush()

    def finish(self, offsets: dict[TopicPartition, int]) -> None:
        self.producer.add_offsets(offsets, self.consumer.metadata())
        self.producer.commit()

    def close(self) -> None:
        self.producer.close()
        self.consumer.close()

    def _got(self, partitions: frozenset[TopicPartition]) -> None:
        self.has |= partitions

    def _lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.has -= partitions


def poll_until(condition: Any, *sides: Side) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        for side in sides:
            side.consumer.poll(0.01)


def write(side: Side, topic: str, value: bytes, offsets: dict[TopicPartition, int]) -> None:
    """A batch, as often as it takes."""
    deadline = time.monotonic() + 60
    while True:
        try:
            side.begin(topic, value)
            return side.finish(offsets)
        except (BrokerNotAvailableException, StaleMemberException):
            assert time.monotonic() < deadline
            side.producer.abort()
            side.consumer.poll(0.2)


def committed_values(address: str, topic: str) -> list[bytes]:
    return [message.value() for message in read(address, topic, committed=True)]


def test_a_predecessor_is_fenced_and_its_open_transaction_given_up(admin: Admin, namespace: str) -> None:
    admin.create_topics([TopicSpec(namespace, 1)])
    partition = TopicPartition(namespace, 0)
    old = Side(admin.address, namespace, "one").join(namespace)
    poll_until(lambda: old.has, old)
    old.begin(namespace, b"never")
    new = TransactionalProducer(client_properties(admin.address, {}), "two", f"{namespace}-one")
    new.initialise()
    assert admin.end_offsets([partition], read_committed=True) == admin.end_offsets([partition])
    with pytest.raises(ProducerFencedException, match=r"\(.*(FENCED|EPOCH).*end that one"):
        old.finish({partition: 5})
    new.begin()
    new.send(namespace, [b"k"], [b"new"], [1])
    new.flush()
    new.add_offsets({partition: 3}, old.consumer.metadata())
    new.commit()
    assert committed_values(admin.address, namespace) == [b"new"]
    assert admin.committed_offsets(namespace, [partition]) == {partition: 3}
    new.close()
    old.close()


def test_offsets_of_an_epoch_that_has_passed_are_refused_and_the_batch_can_be_done_again(
    admin: Admin, namespace: str
) -> None:
    admin.create_topics([TopicSpec(namespace, 2)])
    partition = TopicPartition(namespace, 0)
    first = Side(admin.address, namespace, "one").join(namespace)
    poll_until(lambda: len(first.has) == 2, first)
    before = first.consumer.metadata()
    second = Side(admin.address, namespace, "two").join(namespace)
    poll_until(lambda: len(first.has) == len(second.has) == 1, first, second)
    first.begin(namespace, b"stale")
    with pytest.raises(StaleMemberException):  # of a partition that it has kept, Kafka 4.4 takes them
        first.producer.add_offsets({next(iter(second.has)): 1}, before)
    first.producer.abort()
    first.begin(namespace, b"fresh")
    first.finish({partition: 1})
    assert committed_values(admin.address, namespace) == [b"fresh"]
    first.close()
    second.close()


def test_a_transaction_that_took_too_long_is_given_up_and_done_again(admin: Admin, namespace: str) -> None:
    admin.create_topics([TopicSpec(namespace, 1)])
    partition = TopicPartition(namespace, 0)
    side = Side(admin.address, namespace, "one", **{"transaction.timeout.ms": 1000}).join(namespace)
    poll_until(lambda: side.has, side)
    side.begin(namespace, b"late")
    stable = lambda: admin.end_offsets([partition], read_committed=True)  # noqa: E731
    deadline = time.monotonic() + 30
    while stable() != {partition: 2}:
        assert time.monotonic() < deadline
    with pytest.raises((ProducerFencedException, BrokerNotAvailableException)):
        side.finish({partition: 1})
    side.producer.abort()
    assert committed_values(admin.address, namespace) == []
    write(side, namespace, b"in time", {partition: 2})
    assert committed_values(admin.address, namespace) == [b"in time"]
    side.close()


def test_a_record_that_can_not_be_written_ends_its_transaction_only(admin: Admin, namespace: str) -> None:
    admin.create_topics([TopicSpec(namespace, 1, -1, {"cleanup.policy": "compact"})])
    partition = TopicPartition(namespace, 0)
    side = Side(admin.address, namespace, "one").join(namespace)
    poll_until(lambda: side.has, side)
    side.producer.begin()
    side.producer.send(namespace, [b"k", None], [b"v", b"w"], [1, 1])
    with pytest.raises(ProducerException, match=f"{namespace}-0.*INVALID_RECORD"):
        side.producer.flush()
    side.producer.abort()
    write(side, namespace, b"good", {partition: 1})
    assert committed_values(admin.address, namespace) == [b"good"]
    side.close()


def test_a_record_that_brokers_refuse_is_told_whichever_record_of_its_transaction_is_reported_first(
    admin: Admin, namespace: str
) -> None:
    small, others = f"{namespace}-small", [f"{namespace}-a", f"{namespace}-b"]
    admin.create_topics([TopicSpec(small, 1, -1, {"max.message.bytes": "5000"})])
    admin.create_topics([TopicSpec(each, 1, -1, {}) for each in others])
    producer = TransactionalProducer(client_properties(admin.address, {}, exactly_once=True), "one", namespace)
    large = random.Random(1).randbytes(10_000)

    def write_all() -> None:
        producer.send(small, [b"k"] * 20, [b"v"] * 10 + [large] + [b"v"] * 9, [1] * 20)
        for other in others:
            producer.send(other, [b"k"] * 20, [b"v"] * 20, [1] * 20)
        producer.flush()

    for _ in range(12):  # a fourth of them has the others' reports first
        producer.begin()
        with pytest.raises(ProducerException, match="too large") as raised:
            write_all()
        assert raised.value.refusing_topic == small
        producer.abort()
    producer.close()


def test_a_broker_that_is_away_costs_the_transaction_and_nothing_more(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as own:
        admin = Admin(client_properties(own.bootstrap_servers, {}))
        admin.create_topics([TopicSpec("t", 1)])
        partition = TopicPartition("t", 0)
        side = Side(own.bootstrap_servers, "g", "one", **{"transaction.timeout.ms": 3000}).join("t")
        poll_until(lambda: side.has, side)
        side.begin("t", b"first")
        side.finish({partition: 1})
        side.begin("t", b"lost too")
        own.stop()
        side.producer.send("t", [b"k"], [b"lost"], [1])
        with pytest.raises(BrokerNotAvailableException, match="MSG_TIMED_OUT"):
            side.producer.flush()
        side.producer.abort()
        with pytest.raises(BrokerNotAvailableException, match=f"{own.bootstrap_servers}.*start of transactions"):
            side.producer.begin()
        own.start()
        write(side, "t", b"second", {partition: 2})
        assert committed_values(own.bootstrap_servers, "t") == [b"first", b"second"]
        assert admin.committed_offsets("g", [partition]) == {partition: 2}
        side.close()
        admin.close()
