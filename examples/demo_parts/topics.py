"""Topics that the demonstration reads by itself: the repartition topic as it is written, the sinks at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from demo_parts.commands import DemoFailed

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.types import TopicPartition

Record = tuple[int, int, bytes, bytes]
"""Partition, offset, key, value."""

_POLL_SECONDS = 0.2
_READ_SECONDS = 120.0


class Follower:
    """Keeps every record of a topic, from its beginning on: the application deletes what it has processed."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        """Starts to read at once."""
        properties = client_properties(address, {})
        self.topic = topic
        self.records: list[Record] = []
        self._admin = Admin(properties)
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self._consumer = ChangelogConsumer(properties, f"demo-{topic}")
        self._consumer.add(dict.fromkeys(self._partitions, 0))
        self._ends: Mapping[TopicPartition, int] | None = None
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def read_to_end(self) -> list[Record]:
        """Everything up to the present end, and stop there.

        Raises DemoFailed when records are missing: they were deleted before they could be read.
        """
        self._ends = self._admin.end_offsets(self._partitions)
        self._thread.join(_READ_SECONDS)
        if self._failure is not None or self._thread.is_alive():
            raise DemoFailed(f"the topic {self.topic} could not be read to its end: {self._failure or 'too slow'}")
        if len(self.records) != sum(self._ends.values()):
            raise DemoFailed(f"the topic {self.topic} was read with gaps: {len(self.records)} records")
        return self.records

    def _run(self) -> None:
        try:
            while not self._complete():
                for partition, messages in self._consumer.poll(50_000, _POLL_SECONDS).items():
                    for each in messages:
                        offset, key, value = each.offset(), each.key(), each.value()
                        assert offset is not None and key is not None and value is not None  # noqa: PT018
                        self.records.append((partition.partition, offset, key, value))
        except Exception as error:
            self._failure = error
        finally:
            self._consumer.close()

    def _complete(self) -> bool:
        ends = self._ends
        return ends is not None and all((self._consumer.position(each) or 0) >= end for each, end in ends.items())


def last_values(address: str, topic: str, partitions: int) -> dict[str, bytes]:
    """The last value of each key of a topic."""
    # A key is always in the same partition, and a partition is read in order.
    return {key.decode(): value for _, _, key, value in Follower(address, topic, partitions).read_to_end()}


def wait_for_topic(address: str, topic: str, seconds: float) -> int:
    """How many partitions the topic has, once it is there. Raises DemoFailed when it does not come."""
    admin = Admin(client_properties(address, {}))
    deadline = time.monotonic() + seconds
    while not (found := admin.describe_topics([topic], config=False)):
        if time.monotonic() > deadline:
            raise DemoFailed(f"the topic {topic} was not made within {seconds:.0f} s")
        time.sleep(_POLL_SECONDS)
    return found[topic].partitions
