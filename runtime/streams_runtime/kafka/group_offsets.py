"""What consumer groups have committed, asked without joining them."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException

from streams_runtime.kafka.answers import ASK_AGAIN, PASSING
from streams_runtime.kafka.connection import backoff
from streams_runtime.kafka.foreign import QuietLog, error_of, from_confluent, to_confluent, translated
from streams_runtime.kafka.types import TopicPartition


class GroupOffsets:
    """Reads committed offsets; keeps one consumer a group, which never subscribes and so is no member.

    AdminClient.list_consumer_group_offsets would need no consumer, but ends the process with a segmentation
    fault when the coordinator has just moved or the group's topic is new (librdkafka 2.4 to 2.16).
    """

    def __init__(self, properties: Mapping[str, str], timeout: float) -> None:
        """`timeout` is in seconds, for each request. Does not connect yet."""
        self._properties = dict(properties)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._consumers: dict[str, Any] = {}

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed; partitions without one are left out, as for an unknown
        group.
        """
        end = time.monotonic() + self._timeout
        for delay in backoff(*ASK_AGAIN):
            try:
                return self._ask(group, partitions)
            except KafkaException as failure:
                error = error_of(failure)
                if error is None or error.code() not in PASSING or time.monotonic() + delay > end:
                    doing = f"reading the committed offsets of the group {group}"
                    raise translated(failure, doing, self._properties["bootstrap.servers"]) from failure
            time.sleep(delay)
        raise AssertionError("backoff() never ends")

    def close(self) -> None:
        """Closes the connections; may be called twice."""
        with self._lock:
            consumers, self._consumers = self._consumers, {}
        for consumer in consumers.values():
            consumer.close()

    def _ask(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        answer = self._consumer(group).committed(
            [to_confluent(partition) for partition in partitions], timeout=self._timeout
        )
        for each in answer:
            if each.error is not None:
                raise KafkaException(each.error)
        return {from_confluent(each): each.offset for each in answer if each.offset >= 0}

    def _consumer(self, group: str) -> Any:
        with self._lock:
            if group not in self._consumers:
                config: dict[str, Any] = {
                    "reconnect.backoff.max.ms": "1000",
                    **self._properties,
                    "group.id": group,
                    "enable.auto.commit": "false",
                }
                self._consumers[group] = Consumer(config, logger=QuietLog())
            return self._consumers[group]
