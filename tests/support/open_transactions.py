"""Transactions of another producer, which a test ends as it likes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Producer
from waiting import DEADLINE

from streams_runtime.kafka.client.librdkafka_errors import QuietLog


@contextmanager
def transaction(bootstrap: str, name: str, topic: str, records: Sequence[tuple[str, bytes]]) -> Iterator[Producer]:
    """An open transaction with these records."""
    config = {"bootstrap.servers": bootstrap, "transactional.id": name, "partitioner": "murmur2_random"}
    # The brokers end a transaction that has been open for a minute, unless told otherwise; a loaded machine takes that.
    producer = Producer({**config, "transaction.timeout.ms": 600_000}, logger=QuietLog())
    producer.init_transactions(DEADLINE)
    producer.begin_transaction()
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(DEADLINE) == 0
    yield producer
