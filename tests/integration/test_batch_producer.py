"""A batch's output on a real broker: all of it written, or an error that says why not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from streams_runtime.errors import ProducerException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.client.librdkafka_errors import QuietLog
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.kafka.types import TopicPartition, TopicSpec

pytestmark = pytest.mark.integration

# A topic that is not there is an error at once, not after librdkafka's half minute.
IMPATIENT = {"topic.metadata.propagation.max.ms": 500}


@pytest.fixture
def producer(admin: Admin) -> Iterator[BatchProducer]:
    made = BatchProducer(client_properties(admin.address, IMPATIENT), "test")
    yield made
    made.close()


@pytest.fixture
def topic(admin: Admin, namespace: str) -> str:
    admin.create_topics([TopicSpec(namespace, 4)])
    return namespace


def send_and_flush(producer: BatchProducer, topic: str, partition: int | None = None) -> None:
    producer.send(topic, [b"k"], [b"v"], [1], partition)
    producer.flush()


def records_of(admin: Admin, topic: str, partitions: int = 4) -> list[Message]:
    """All records of the topic, in the order of partitions and offsets."""
    ends = admin.end_offsets([TopicPartition(topic, number) for number in range(partitions)])
    config: dict[str, Any] = {"bootstrap.servers": admin.address, "group.id": topic}
    reader = Consumer({**config, "enable.auto.commit": False}, logger=QuietLog())
    reader.assign([ConfluentTopicPartition(each.topic, each.partition, 0) for each in ends])
    found: list[Message] = []
    deadline = time.monotonic() + 30
    while len(found) < sum(ends.values()):
        assert time.monotonic() < deadline, f"{len(found)} of {sum(ends.values())} records"
        found += reader.consume(10_000, 0.2)
    reader.close()
    return sorted(found, key=lambda each: (each.partition() or 0, each.offset() or 0))


def test_a_record_arrives_with_key_value_timestamp_headers_and_partition(
    admin: Admin, producer: BatchProducer, topic: str
) -> None:
    producer.send(
        topic,
        [b"k", None, b""],
        [b"v", b"no key", None],
        [1_700_000_000_000, 2, 3],
        partition=2,
        headers=[[("why", b"test"), ("n", None)], None, []],
    )
    producer.flush()
    first, second, third = records_of(admin, topic)
    assert (first.key(), first.value(), first.timestamp()[1]) == (b"k", b"v", 1_700_000_000_000)
    assert first.headers() == [("why", b"test"), ("n", None)]
    assert (second.key(), second.value(), second.headers()) == (None, b"no key", None)
    assert (third.key(), third.value(), third.timestamp()[1]) == (b"", None, 3)
    assert {each.partition() for each in (first, second, third)} == {2}


def test_timestamp_zero_does_not_become_the_present(admin: Admin, producer: BatchProducer, topic: str) -> None:
    producer.send(topic, [b"k"] * 2, [b"v"] * 2, [0, 5])
    producer.flush()
    assert [each.timestamp()[1] for each in records_of(admin, topic)] == [1, 5]


def test_a_timestamp_before_1970_is_refused_with_the_record(producer: BatchProducer, topic: str) -> None:
    with pytest.raises(ProducerException, match=rf"record 1 for {topic} has the timestamp -5"):
        producer.send(topic, [b"k"] * 2, [b"v"] * 2, [0, -5])


def test_without_a_partition_the_key_decides_and_order_within_it_is_kept(
    admin: Admin, producer: BatchProducer, topic: str
) -> None:
    keys = [b"key-%d" % (number % 500) for number in range(5000)]
    producer.send(topic, keys, [b"%d" % number for number in range(5000)], [1] * 5000)
    producer.flush()
    records = records_of(admin, topic)
    assert len(records) == 5000
    last: dict[bytes, int] = {}
    for record in records:
        key, number = record.key() or b"", int(record.value() or b"")
        assert record.partition() == partition_for(key, 4)
        assert number > last.get(key, -1)
        last[key] = number


def test_a_batch_larger_than_the_queue_is_written_whole(admin: Admin, topic: str) -> None:
    properties = client_properties(admin.address, {"queue.buffering.max.messages": 1000})
    producer = BatchProducer(properties, "test")
    producer.send(topic, [b"%d" % number for number in range(30_000)], [b"v"] * 30_000, [1] * 30_000)
    producer.flush()
    producer.close()
    ends = admin.end_offsets([TopicPartition(topic, number) for number in range(4)])
    assert sum(ends.values()) == 30_000


def test_each_record_is_written_once_as_it_is_while_the_queue_is_full(admin: Admin, topic: str) -> None:
    producer = BatchProducer(client_properties(admin.address, {"queue.buffering.max.messages": 100}), "test")
    texts = [b"%04d" % number for number in range(2000)]
    places = [b"key-%d" % (number % 7) for number in range(2000)]
    producer.send(
        topic,
        [b"key " + text for text in texts],
        tuple(texts),
        range(1, 2001),
        headers=[[("number", text)] for text in texts],
        placed_by=places,
    )
    producer.flush()
    producer.close()
    found = [
        (each.partition(), each.key(), each.value(), each.timestamp()[1], each.headers())
        for each in records_of(admin, topic)
    ]
    expected = [
        (partition_for(place, 4), b"key " + text, text, row, [("number", text)])
        for row, (place, text) in enumerate(zip(places, texts, strict=True), 1)
    ]
    assert found == sorted(expected, key=lambda each: (each[0], each[2]))


def test_a_record_that_is_too_large_is_named_by_its_row_behind_a_full_queue(admin: Admin, topic: str) -> None:
    producer = BatchProducer(client_properties(admin.address, {"queue.buffering.max.messages": 100}), "test")
    with pytest.raises(ProducerException, match=f"record 777 for {topic}-2 .*MSG_SIZE_TOO_LARGE"):
        producer.send(topic, [b"k"] * 1000, [b"v"] * 777 + [b"v" * 2_000_000] * 223, [1] * 1000, 2)
    producer.close()


def test_every_refused_record_is_counted_with_the_partition_and_the_brokers_reason(
    admin: Admin, namespace: str, producer: BatchProducer
) -> None:
    admin.create_topics([TopicSpec(namespace, 1, -1, {"cleanup.policy": "compact"})])
    producer.send(namespace, [None] * 3, [b"v"] * 3, [1] * 3)
    with pytest.raises(ProducerException, match=rf"3 records were not written: {namespace}-0: .*INVALID_RECORD"):
        producer.flush()


def test_a_record_for_a_partition_that_is_not_there_is_an_error(producer: BatchProducer, topic: str) -> None:
    with pytest.raises(ProducerException, match=f"{topic}-9.*UNKNOWN_PARTITION"):
        send_and_flush(producer, topic, partition=9)


def test_a_topic_that_is_not_there_is_an_error_that_names_it(producer: BatchProducer, namespace: str) -> None:
    with pytest.raises(ProducerException, match=f"{namespace}.*UNKNOWN_TOPIC"):
        send_and_flush(producer, namespace)


def test_a_record_that_is_too_large_is_an_error(producer: BatchProducer, topic: str) -> None:
    with pytest.raises(ProducerException, match=f"record 1 for {topic}.*MSG_SIZE_TOO_LARGE"):
        producer.send(topic, [b"k"] * 2, [b"v", b"v" * 2_000_000], [1] * 2)


def test_sequences_of_different_length_are_no_batch(producer: BatchProducer, topic: str) -> None:
    with pytest.raises(ValueError, match="not one batch"):
        producer.send(topic, [b"k"], [b"v", b"v"], [1])


def test_what_is_sent_while_the_broker_is_away_is_written_when_it_is_back(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as own:
        admin = Admin(client_properties(own.bootstrap_servers, {}))
        admin.create_topics([TopicSpec("output", 1)])
        producer = BatchProducer(client_properties(own.bootstrap_servers, {}), "test")
        producer.send("output", [b"k"], [b"before"], [1])
        producer.flush()
        own.stop()
        producer.send("output", [b"k"] * 1000, [b"during"] * 1000, [1] * 1000)
        flushed = threading.Event()
        flushing = threading.Thread(target=lambda: (producer.flush(), flushed.set()), daemon=True)
        flushing.start()
        assert not flushed.wait(1)
        own.start()
        assert flushed.wait(60)
        partition = TopicPartition("output", 0)
        assert admin.end_offsets([partition]) == {partition: 1001}
        producer.close()
        admin.close()


def test_flush_without_a_broker_ends_when_told_to_and_close_does_not_wait(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stopping = threading.Event()
    with EmbeddedBroker(tmp_path) as own:
        Admin(client_properties(own.bootstrap_servers, {})).create_topics([TopicSpec("output", 1)])
        producer = BatchProducer(client_properties(own.bootstrap_servers, {}), "test", stopping.is_set)
        producer.send("output", [b"k"], [b"before"], [1])
        producer.flush()
    producer.send("output", [b"k"] * 1000, [b"during"] * 1000, [1] * 1000)
    stopping.set()
    with pytest.raises(ProducerException, match=f"stopped while 1000 records waited.*{own.bootstrap_servers}"):
        producer.flush()
    started = time.monotonic()
    producer.close()
    producer.close()
    assert time.monotonic() - started < 10
    assert "rdkafka" not in capfd.readouterr().err
