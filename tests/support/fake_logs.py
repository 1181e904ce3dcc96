"""Logs of partitions in memory, with a member of a group that fetches from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import Message

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.client.librdkafka_errors import partition_of
from streams_runtime.kafka.consumer.group_consumer import Fetched
from streams_runtime.kafka.consumer.record_table import record_table
from streams_runtime.kafka.types import TopicPartition


def record(
    at: TopicPartition, number: int, header: list[tuple[str, bytes | None]] | None = None, time: int = 1000
) -> Message:
    """A message as librdkafka's binding gives it."""
    return Message(
        topic=at.topic,
        partition=at.partition,
        offset=number,
        key=None if number % 5 == 4 else b"k%d" % number,
        value=None if number % 7 == 6 else b"v%d" % number,
        timestamp=(1, time + number),
        headers=header,
    )


@dataclass
class FakeBroker:
    """Logs of partitions, and a member that fetches from those that are resumed.

    A record's time (ms) is its offset and a thousand, and what `later` has of its partition.
    """

    ends: dict[TopicPartition, int]
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    resumed: dict[TopicPartition, int] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    away: bool = False
    markers: set[tuple[TopicPartition, int]] = field(default_factory=set)
    later: dict[TopicPartition, int] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    """How long the member was to wait for something, in seconds."""

    def fetch(self, limit: int, wait: float) -> Fetched:
        self.calls.append("fetch")
        self.waits.append(wait)
        found: list[Message] = []
        for each, at in self.resumed.items():
            end = min(self.ends[each], at + limit - len(found))
            found += self._records(each, range(at, end))
            self.resumed[each] = max(at, end)
        # Markers are fetched, but not handed out.
        records = [each for each in found if (partition_of(each), each.offset()) not in self.markers]
        ends = {each: at for each, at in self.resumed.items() if at == self.ends[each]}
        return Fetched(records, ends)

    def poll(self, wait: float = 0) -> None:
        self.calls.append("poll")
        self.waits.append(wait)

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append("pause")
        for each in partitions:
            self.resumed.pop(each, None)

    def resume(self, positions: Mapping[TopicPartition, int]) -> None:
        self.calls.append("resume")
        self.resumed |= positions

    def start_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.starts.get(each, 0) for each in partitions}

    def end_offsets(
        self, partitions: Sequence[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        if self.away:
            raise BrokerNotAvailableException("away")
        return {each: self.ends[each] for each in partitions}

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        found = {each: max(0, time - 1000 - self.later.get(each, 0)) for each, time in times.items()}
        return {each: None if at >= self.ends[each] else at for each, at in found.items()}

    def read(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> pa.Table:
        self.calls.append("read")
        return record_table([made for each, at in ranges.items() for made in self._records(each, range(*at))])

    def _records(self, partition: TopicPartition, offsets: range) -> list[Message]:
        return [record(partition, number, time=1000 + self.later.get(partition, 0)) for number in offsets]
