"""Topics in memory: what brokers would hold of them that nobody has read yet."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streams_runtime.batch.encode import Headers
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA, microseconds
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.testing.mock_producer import Sent
from streams_runtime.topology.plan import SubTopology


class Logged(NamedTuple):
    """A record in its place. Time in ms."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers | None = None


class EveryTopic:
    """Stands for brokers that have every topic, whatever its name, and take all that is written to it."""

    def partition_counts(self, names: Collection[str]) -> Mapping[str, int]:
        """All of them."""
        return dict.fromkeys(names, 1)

    def topic_configs(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """Without a limit."""
        return {name: {} for name in names}


class Logs:
    """Records by topic, in the order in which they came. Keys are placed as Kafka's producers place them."""

    def __init__(self, counts: Mapping[str, int], others: int = 1) -> None:
        """`counts` are the partitions of the topics that are known to be read; `others` are those of each topic that
        only records name. Of changelogs, whose records name their partitions, only the ends are kept.
        """
        self._counts = dict(counts)
        self._others = others
        self._unread: defaultdict[str, deque[Logged]] = defaultdict(deque)
        self._ends: Counter[TopicPartition] = Counter()
        self._keyless: Counter[str] = Counter()

    def know(self, topic: str, count: int) -> None:
        """A topic that a pattern fits is there, with so many partitions."""
        self._counts[topic] = count

    def read_by(self, sub: SubTopology) -> Sequence[str]:
        """The topics that the sub-topology reads."""
        return [
            *sub.source_topics,
            *(each for each in self._counts if each not in sub.source_topics and sub.reads(each)),
        ]

    def append(self, sent: Sent, placed_by: bytes | None) -> None:
        """Write a record; `placed_by` decides where it names no partition, and without a key partitions take turns."""
        topic, partition = sent.topic, sent.partition
        is_read = topic in self._counts or partition is None
        count = self.partition_count(topic)
        if partition is None and placed_by is None:
            partition = self._keyless[topic] % count
            self._keyless[topic] += 1
        elif partition is None:
            partition = partition_for(placed_by or b"", count)
        place = TopicPartition(topic, partition)
        if is_read:
            logged = Logged(topic, partition, self._ends[place], sent.key, sent.value, sent.timestamp, sent.headers)
            self._unread[topic].append(logged)
        self._ends[place] += 1

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has."""
        return self._counts.get(topic, self._others)

    def unread(self, topic: str) -> deque[Logged]:
        """The records of a topic that are still to be read; whoever reads one takes it out."""
        return self._unread[topic]

    def take(self, topics: Iterable[str]) -> list[Logged]:
        """All unread records of these topics; they are read then."""
        taken = [each for topic in topics for each in self._unread[topic]]
        for topic in topics:
            self._unread[topic].clear()
        return taken

    def end(self, partition: TopicPartition) -> int:
        """The offset that comes next."""
        return self._ends[partition]


def batch_of(records: Sequence[Logged]) -> BatchInput:
    """A batch of these records; each partition's are in offset order."""
    ends: dict[TopicPartition, int] = {}
    starts: dict[TopicPartition, int] = {}
    for each in records:
        place = TopicPartition(each.topic, each.partition)
        starts.setdefault(place, each.offset)
        ends[place] = each.offset + 1
    columns = {
        "key": [each.key for each in records],
        "value": [each.value for each in records],
        "topic": [each.topic for each in records],
        "partition": [each.partition for each in records],
        "offset": [each.offset for each in records],
        "timestamp": microseconds(np.array([each.timestamp for each in records], np.int64)),
        "headers": [each.headers for each in records],
    }
    arrays = [pa.array(columns[field.name], field.type) for field in RAW_SCHEMA]
    ranges = tuple(OffsetRange(place, starts[place], end) for place, end in ends.items())
    return BatchInput(ranges, pa.table(arrays, schema=RAW_SCHEMA))
