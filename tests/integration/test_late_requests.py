"""Requests of a transaction that reach the broker late, twice, or never, and what the next transactions come to.

A proxy between producer and broker (support/kafka_proxy.py) makes them. STREAMSAPP_TEST_LATE: how many of each kind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from clients import read
from confluent_kafka import Consumer
from kafka_proxy import Fault, KafkaProxy, Mode, Request
from kio.schema.errors import ErrorCode
from waiting import eventually

from streams_runtime.errors import BrokerNotAvailableException, TaskMigratedException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.client.librdkafka_errors import QuietLog
from streams_runtime.kafka.producer.transactions import TransactionalProducer
from streams_runtime.kafka.types import TopicPartition, TopicSpec

pytestmark = pytest.mark.integration

LATE = int(os.environ.get("STREAMSAPP_TEST_LATE", "4"))
SECONDS = 300 + LATE


@dataclass(frozen=True, slots=True)
class Behind:
    """A broker behind a proxy."""

    proxy: KafkaProxy
    address: str
    admin: Admin


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    with (
        KafkaProxy() as proxy,
        EmbeddedBroker(tmp_path_factory.mktemp("broker"), advertised_port=proxy.port) as broker,
    ):
        proxy.upstream_port = broker.port
        address = f"127.0.0.1:{proxy.port}"
        admin = Admin(client_properties(address, {}))
        yield Behind(proxy, address, admin)
        admin.close()


@dataclass
class Writer:
    """Writes transactions of two halves, and knows which of them were committed."""

    behind: Behind
    name: str
    committed: list[bytes] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    offset: int = 0
    number: int = 0
    deadline: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    def __post_init__(self) -> None:
        self.behind.admin.create_topics([TopicSpec(self.name, 2)])
        properties = client_properties(self.behind.address, {}, exactly_once=True)
        self.producer = TransactionalProducer(properties, f"{self.name}|producer", self.name)
        self.member = Consumer({**client_properties(self.behind.address, {}), "group.id": self.name}, logger=QuietLog())

    @property
    def input(self) -> TopicPartition:
        """The partition whose offsets are committed; nobody reads it."""
        return TopicPartition(self.name, 0)

    def write(self, commit: bool = True, between: int = 0) -> None:
        """One transaction, as often as it takes. With `between` its halves lie on both sides of that many events."""
        self.number += 1
        while not self._written(commit, between):
            assert time.monotonic() < self.deadline, "no attempt goes through"

    def _written(self, commit: bool, between: int) -> bool:
        try:
            self.producer.begin()
            mine = [self._half(partition, between) for partition in range(2)]
            self.producer.add_offsets({self.input: self.number}, self.member.consumer_group_metadata())
            if commit:
                self.producer.commit()
                self.committed += mine
                self.offset = self.number
        except (BrokerNotAvailableException, TaskMigratedException) as failure:
            self.failures.append(str(failure))
            self.producer.abort()
            return False
        if not commit:
            self.producer.abort()
        return True

    def _half(self, partition: int, between: int) -> bytes:
        value = b"%d-%d" % (self.number, partition)
        self.producer.send(self.name, [b"k"], [value], [1], partition)
        self.producer.flush()
        if between and not partition:
            eventually(lambda: len(self.behind.proxy.events) >= between, "the late request arrives")
        return value

    @property
    def visible(self) -> list[bytes]:
        """What readers of committed records see."""
        return [message.value() for message in read(self.behind.address, self.name, committed=True)]

    @property
    def committed_offset(self) -> int | None:
        return self.behind.admin.committed_offsets(self.name, [self.input]).get(self.input)


@contextmanager
def writing(behind: Behind, name: str) -> Iterator[Writer]:
    writer = Writer(behind, name)
    behind.proxy.events.clear()
    try:
        yield writer
    finally:
        behind.proxy.faults = []
        writer.producer.close()
        writer.member.close()


def ends(committed: bool) -> Callable[[Request], bool]:
    """Whether an EndTxn commits, or aborts."""
    return lambda request: bool(request.body.committed) is committed


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_an_end_of_a_transaction_that_arrives_in_the_midst_of_the_next_one_does_nothing_to_it(
    behind: Behind, namespace: str, committed: bool
) -> None:
    """The next transaction ends the other way than the one that the late request belongs to."""
    with writing(behind, namespace) as writer:
        for number in range(1, LATE + 1):
            behind.proxy.faults = [
                Fault("EndTxn", Mode.LATE, namespace, ends(committed), limit=1, after="Produce", delay=(60, 60))
            ]
            writer.write(commit=committed)
            writer.write(commit=not committed, between=number)
        came = behind.proxy.of(Mode.LATE)
        assert [event.in_time for event in came] == [True] * LATE
        assert {event.answer.error_code for event in came} == {ErrorCode.invalid_producer_epoch}
        assert sorted(writer.visible) == sorted(writer.committed)
        assert writer.committed_offset == (writer.offset or None)


@pytest.mark.timeout(SECONDS)
def test_offsets_of_a_transaction_that_arrive_in_the_midst_of_the_next_one_take_nothing_back(
    behind: Behind, namespace: str
) -> None:
    with writing(behind, namespace) as writer:
        for number in range(1, LATE + 1):
            # Behind the next transaction's own offsets, which it would replace.
            behind.proxy.faults = [
                Fault("TxnOffsetCommit", Mode.LATE, namespace, limit=1, after="TxnOffsetCommit", delay=(60, 60)),
                Fault("EndTxn", Mode.DELAYED, namespace, grace=1, limit=1, after="TxnOffsetCommit", delay=(1, 1)),
            ]
            writer.write()
            writer.write()
            assert len(behind.proxy.of(Mode.LATE)) == number
            assert writer.committed_offset == writer.offset
        assert sorted(writer.visible) == sorted(writer.committed)


@pytest.mark.timeout(SECONDS)
def test_connections_that_are_cut_in_a_transaction_cost_it_seconds_and_its_producer_comes_back(
    behind: Behind, namespace: str
) -> None:
    with writing(behind, namespace) as writer:
        for api in ("AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit"):
            writer.write()  # by the producer that is made anew, which then knows its brokers
            behind.proxy.faults = [Fault(each, Mode.DROPPED, namespace, limit=1) for each in ("Produce", api)]
            writer.write()
            assert [fault.fired for fault in behind.proxy.faults] == [1, 1]
        assert not [failure for failure in writer.failures if "abandoned" in failure]
        assert sorted(writer.visible) == sorted(writer.committed)
        assert len(writer.committed) == 2 * writer.number
        assert writer.committed_offset == writer.offset == writer.number
