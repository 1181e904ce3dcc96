"""Offsets that a partition's log does not have."""

from __future__ import annotations

from confluent_kafka import KafkaError

from streams_runtime.kafka.types import TopicPartition

INVALID_OFFSET = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})
"""What librdkafka reports of them."""


class InvalidOffsetException(Exception):
    """A partition no longer has, or never had, the offset that was asked for. Read it from where it begins."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        super().__init__(f"{partition}: the offset is out of range")
