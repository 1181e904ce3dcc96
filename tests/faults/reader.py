"""A topic's committed records, as a consumer of them reads along."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from streams_runtime.kafka.client.librdkafka_errors import QuietLog

LONGEST = 240.0
"""Seconds that are only ever waited for in full by a history that fails."""


class Reader:
    """Reads a topic's committed records, each once, from where its last look ended."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self.records: list[Any] = []
        config = {"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False}
        self._consumer = Consumer(
            {**config, "isolation.level": "read_committed", "enable.partition.eof": True}, logger=QuietLog()
        )
        self._topic, self._next = topic, dict.fromkeys(range(partitions), 0)
        self._consumer.assign([ConfluentTopicPartition(topic, number, 0) for number in self._next])
        self._consumer.poll(0.1)  # a partition takes seeks once it is assigned

    def look(self) -> list[Any]:
        """All records so far, once every partition was read to its end."""
        # What was told of ends meanwhile is old; behind a seek they are told of anew.
        for number, offset in self._next.items():
            self._consumer.seek(ConfluentTopicPartition(self._topic, number, offset))
        open_ends = set(self._next)
        deadline = time.monotonic() + LONGEST
        while open_ends:
            assert time.monotonic() < deadline, f"no end of {open_ends}"
            for message in self._consumer.consume(1000, 0.2):
                error = message.error()
                if error is None:
                    self.records.append(message)
                    self._next[message.partition()] = message.offset() + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_ends.discard(message.partition())
        return self.records

    def close(self) -> None:
        self._consumer.close()
