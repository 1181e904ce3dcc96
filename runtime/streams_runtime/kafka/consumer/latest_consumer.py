"""A bulk load's consumer: of what it reads, the last record of each key, in columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from confluent_kafka import KafkaError

from streams_runtime.kafka.client.librdkafka import Handle, topic_name
from streams_runtime.kafka.client.librdkafka_errors import translated
from streams_runtime.kafka.consumer.changelog_consumer import restore_config
from streams_runtime.kafka.consumer.invalid_offset import INVALID_OFFSET, InvalidOffsetException
from streams_runtime.kafka.consumer.message_columns import Latest, Messages, free, latest_of, messages_at
from streams_runtime.kafka.types import TopicPartition

_FIRST_RECORDS = 20_000  # of the first poll, when their size is not known
_POLL_RECORDS = 200_000  # the more, the fewer that are not a key's last
_POLL_BYTES = 48 * 1024 * 1024
_RECORD_BYTES = 400  # of a record in librdkafka, beside key and value
# Asked for anew from when on. The consumer is as fast as the brokers: more would lie about, up to 400 bytes each.
_QUEUED_RECORDS = "25000"
_PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a poll gave of one partition: `records` records, of which `latest` has the last of each key."""

    records: int
    latest: Latest


class LatestConsumer:
    """Reads partitions up to an end each; knows the *position* of each, as ChangelogConsumer. One thread uses it."""

    def __init__(self, properties: Mapping[str, str], client_id: str) -> None:
        """Raises StreamsException: librdkafka refuses the properties."""
        self._address = properties["bootstrap.servers"]
        config = restore_config(properties, client_id) | {"queued.min.messages": _QUEUED_RECORDS}
        self._handle = Handle(config)
        self._limit = _FIRST_RECORDS
        self._ends: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._invalid: list[TopicPartition] = []
        self._buffer = np.empty(_POLL_RECORDS, np.int64)

    def add(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """Read these partitions as well, each from its first offset; what is at its second, or past it, is left out."""
        self._ends |= {each: end for each, (_, end) in ranges.items()}
        self._positions |= {each: start for each, (start, _) in ranges.items()}
        self._handle.assign({each: start for each, (start, _) in ranges.items()})

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """Stop reading these partitions."""
        self._handle.unassign(partitions)
        for each in partitions:
            del self._ends[each], self._positions[each]

    def position(self, partition: TopicPartition) -> int:
        """Offset at which the next fetch of the partition begins: past transaction markers and gaps, too."""
        return self._positions[partition]

    def poll(self, wait: float) -> dict[TopicPartition, Fetched]:
        """What has come, by partition; waits up to `wait` seconds for more.

        Raises:
            InvalidOffsetException: a partition's offset is out of range.
            StreamsException: the broker refuses to be read. While it is away nothing comes, and nothing is raised.
        """
        if self._invalid:
            raise InvalidOffsetException(self._invalid.pop())
        count = self._handle.consume(self._buffer.ctypes.data, self._limit, wait)
        if count <= 0:
            return {}
        addresses = self._buffer[:count]
        try:
            return self._sorted_out(messages_at(addresses))
        finally:
            free(addresses)

    def close(self) -> None:
        """Free everything. May be called twice."""
        self._handle.close()

    def _sorted_out(self, messages: Messages) -> dict[TopicPartition, Fetched]:
        found = {}
        records = messages
        if messages.errors.any():
            self._note_events(messages.at(np.flatnonzero(messages.errors)))
            records = messages.at(np.flatnonzero(messages.errors == 0))
        for topic in np.unique(records.topics).tolist():
            for number in np.unique(records.partitions[records.topics == topic]).tolist():
                partition = TopicPartition(topic_name(topic), number)
                rows = np.flatnonzero((records.topics == topic) & (records.partitions == number))
                if partition in self._ends:
                    mine = records if len(rows) == len(records) else records.at(rows)
                    found[partition] = self._taken(partition, mine)
        if len(records):
            size = int((records.key_lengths.sum() + records.value_lengths.sum()) / len(records)) + _RECORD_BYTES
            self._limit = max(1, min(_POLL_RECORDS, _POLL_BYTES // size))
        return found

    def _taken(self, partition: TopicPartition, records: Messages) -> Fetched:
        self._advance(partition, int(records.offsets[-1]) + 1)
        below = int(np.searchsorted(records.offsets, self._ends[partition]))
        if below < len(records):
            records = records.at(np.arange(below))
        return Fetched(below, latest_of(records))

    def _note_events(self, events: Messages) -> None:
        """Take in what is not a record: ends of partitions, and errors."""
        columns = zip(events.errors.tolist(), events.topics.tolist(), events.partitions.tolist(), strict=True)
        for (code, topic, number), offset in zip(columns, events.offsets.tolist(), strict=True):
            partition = TopicPartition(topic_name(topic) if topic else "", number)
            if code == KafkaError._PARTITION_EOF:
                self._advance(partition, offset)
            elif code in INVALID_OFFSET:
                if partition in self._positions:
                    self._invalid.append(partition)
            elif code not in _PASSING:
                raise translated(KafkaError(code), f"reading the changelog {partition}", self._address)

    def _advance(self, partition: TopicPartition, position: int) -> None:
        if partition in self._positions:
            self._positions[partition] = max(self._positions[partition], position)
