"""The harness's own view of the broker: topics made and filled, results read back, commits watched."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bench_data import Message
from bench_verify import WrongResultError
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    NewTopic,
    OffsetSpec,
)

from streams_runtime.kafka.admin.admin_futures import ASK_AGAIN, PASSING
from streams_runtime.retry_backoff import backoff

REQUEST_TIMEOUT_S = 30.0
READ_TIMEOUT_S = 60.0
QUEUE_LIMIT = 400_000
"""Records that may wait in the producer before the harness lets it catch up."""


class Cluster:
    """One broker, and the topics made on it. Its clients' own logs are silent: failures are raised."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.made: list[str] = []
        # One for all calls: a client that goes out of scope cancels what it was asked.
        self.admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})

    def create(self, topic: str, partitions: int, config: dict[str, str] | None = None) -> None:
        """Make a topic with one replica. Raises KafkaException when it exists already."""
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config or {})
        self.admin.create_topics([new])[topic].result(REQUEST_TIMEOUT_S)
        self.made.append(topic)

    def topics(self) -> list[str]:
        """The names of all topics."""
        return list(self.admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics)

    def delete_all(self, prefix: str) -> None:
        """Remove the run's topics, the applications' internal ones included, by the run's own prefix."""
        topics = [name for name in self.topics() if name.startswith(prefix)]
        for deletion in self.admin.delete_topics(topics).values() if topics else ():
            deletion.result(REQUEST_TIMEOUT_S)

    def fill(self, topics: list[str], chunks: Iterable[list[Message]]) -> int:
        """Write the same records to every topic, which nobody else writes to. Returns the count.

        They are on the disk then: what the system still has to write would slow down whoever runs first.
        """
        sent = self.write(topics, chunks)
        for topic in topics:
            stored = sum(self.end_offsets(topic).values())
            if stored != sent:
                raise TimeoutError(f"{topic}: the broker took {stored:,} of {sent:,} records")
        os.sync()
        return sent

    def write(self, topics: list[str], chunks: Iterable[list[Message]]) -> int:
        """Write the same records to every topic, partitioned as the Java client does. Returns the count.

        Raises TimeoutError when the broker does not take them; whether it has all of them is the caller's to count.
        """
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "log_level": 0,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 20,
                "batch.size": 262_144,
                "queue.buffering.max.messages": 4 * QUEUE_LIMIT,
                "queue.buffering.max.kbytes": 2_000_000,
            }
        )
        sent = 0
        for chunk in chunks:
            sent += len(chunk)
            for topic in topics:
                for message in chunk:
                    producer.produce(topic, message.value, message.key, timestamp=message.timestamp)
            while len(producer) > QUEUE_LIMIT:
                producer.poll(0.05)
        if left := producer.flush(REQUEST_TIMEOUT_S):
            raise TimeoutError(f"{', '.join(topics)}: the broker has not taken {left:,} of {sent:,} records")
        return sent

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Next offset of each partition."""
        partitions = self.admin.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics[topic].partitions
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        request = {TopicPartition(topic, number): latest for number in partitions}
        end = time.monotonic() + REQUEST_TIMEOUT_S
        for delay in backoff(*ASK_AGAIN):
            try:
                answers = self.admin.list_offsets(request)
                return {where.partition: answer.result(REQUEST_TIMEOUT_S).offset for where, answer in answers.items()}
            except KafkaException as failure:
                # A topic that was made just now may not have its leaders yet.
                if failure.args[0].code() not in PASSING or time.monotonic() + delay > end:
                    raise
            time.sleep(delay)
        raise AssertionError("backoff() never ends")

    def last_values(self, topic: str) -> dict[bytes, bytes]:
        """The last value of each key. Raises WrongResultError for a record without key or value."""
        return {message.key: message.value for message in self.records(topic)}

    def records(self, topic: str) -> Iterator[Message]:
        """What is in a topic now, as `entries` has it. Raises WrongResultError for a record without key or value."""
        for message in self._messages(topic):
            key, value = message.key(), message.value()
            if key is None or value is None:
                where = f"{topic}-{message.partition()}@{message.offset()}"
                raise WrongResultError(f"{where}: a record without key or value")
            yield Message(key, value, message.timestamp()[1])

    def entries(self, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Keys and values in a topic now, of transactions what was committed, in order within each partition.

        Raises TimeoutError when no more of them come.
        """
        return ((message.key(), message.value()) for message in self._messages(topic))

    def _messages(self, topic: str) -> Iterator[Any]:
        ends = {number: end for number, end in self.end_offsets(topic).items() if end > 0}
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "log_level": 0,
                "group.id": "bench-harness",
                "enable.auto.commit": False,
                "fetch.message.max.bytes": 4_194_304,
                "queued.min.messages": 500_000,
            }
        )
        patience = time.monotonic() + READ_TIMEOUT_S
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in ends])
            while ends:
                for message in consumer.consume(20_000, timeout=0.2):
                    if message.error():
                        raise KafkaException(message.error())
                    patience = time.monotonic() + READ_TIMEOUT_S
                    yield message
                # By position: what ends a transaction has an offset and is no record.
                positions = {at.partition: at.offset for at in consumer.position(consumer.assignment())}
                ends = {number: end for number, end in ends.items() if positions[number] < end}
                if time.monotonic() > patience:
                    raise TimeoutError(f"{topic}: not read to its ends {ends}; no record for {READ_TIMEOUT_S:.0f} s")
        finally:
            consumer.close()


@dataclass(slots=True)
class CommitWatch:
    """Waits until a group has committed every partition of a topic to its end."""

    cluster: Cluster
    group: str
    topic: str

    def wait(self, alive: Callable[[], None], limit_s: float, interval_s: float = 0.05, share: float = 1.0) -> float:
        """The moment (seconds since the epoch) at which all, or that share of all records, was seen committed.

        `alive` is called between looks and raises when there is nothing to wait for any more. Raises
        TimeoutError with the offsets after `limit_s`.
        """
        # Not the AdminClient: it may end the process while the group is new (kafka.admin.group_offsets). Nor
        # GroupOffsets: it reads the metadata too, which after Kafka Streams may be no text.
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "log_level": 0,
                "group.id": self.group,
                "enable.auto.commit": False,
            }
        )
        try:
            return self._wait(consumer, alive, limit_s, interval_s, share)
        finally:
            consumer.close()

    def _wait(
        self, consumer: Consumer, alive: Callable[[], None], limit_s: float, interval_s: float, share: float
    ) -> float:
        ends = {number: end for number, end in self.cluster.end_offsets(self.topic).items() if end > 0}
        deadline = time.monotonic() + limit_s
        while True:
            committed = self._committed(consumer, list(ends))
            now = time.time()
            if sum(max(0, committed.get(number, 0)) for number in ends) >= share * sum(ends.values()):
                return now
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.group} committed {committed} of {ends} in {limit_s:.0f} s")
            alive()
            time.sleep(interval_s)

    def _committed(self, consumer: Consumer, partitions: list[int]) -> dict[int, int]:
        """Nothing while the group's coordinator is not to be had."""
        try:
            asked = [TopicPartition(self.topic, number) for number in partitions]
            return {each.partition: each.offset for each in consumer.committed(asked, timeout=REQUEST_TIMEOUT_S)}
        except KafkaException:
            return {}
