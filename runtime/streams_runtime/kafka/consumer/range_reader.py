"""Reads ranges of offsets, outside of any group: in whichever process is told to, such as Spark's Python workers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.client.librdkafka import Handle, message_reason, topic_name
from streams_runtime.kafka.client.librdkafka_errors import translated
from streams_runtime.kafka.consumer.held_records import Records
from streams_runtime.kafka.consumer.invalid_offset import INVALID_OFFSET, InvalidOffsetException
from streams_runtime.kafka.consumer.message_columns import Messages, free, messages_at
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.kafka.types import TopicPartition

_TICK = 0.2  # seconds that one call waits for records
_PATIENCE = 30.0  # seconds without any answer after which the broker counts as away
_FIRST, _AT_MOST = 100, 20_000  # records of one call: until it is known how large they are, and then
_TOGETHER = 16 * 1024 * 1024  # bytes of values that one call is to bring
_readers: dict[frozenset[tuple[str, str]], RangeReader] = {}


class RangeReader:
    """A consumer that is told where to begin and where to end. One thread uses it.

    It stays connected between reads. After an error its connections, and what it knew of topics, are forgotten:
    librdkafka goes on asking with the leader epoch of a topic that was deleted and made anew (librdkafka #4898).
    """

    def __init__(self, properties: Mapping[str, str], patience: float = _PATIENCE) -> None:
        """`properties` come from `client_properties`; `patience`: see `read`. Does not connect yet."""
        self._patience = patience
        self.address = properties["bootstrap.servers"]
        self._config: dict[str, str] = {
            # Under exactly once the properties say read_committed.
            "isolation.level": "read_uncommitted",
            # What is fetched ahead of what is read: more of it is thrown away where a range ends.
            "queued.max.messages.kbytes": "16384",
            "queued.min.messages": "20000",
            # Milliseconds until it is looked again whether more is to be fetched; 1,000 would be of idleness.
            "fetch.queue.backoff.ms": "5",
            **properties,
            "group.id": "ranges",  # librdkafka wants one; it is never joined and nothing is committed
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "error",
        }
        self._buffer = np.empty(_AT_MOST, np.int64)
        self._open: Handle | None = None

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]]) -> Iterator[Records]:
        """The records start <= offset < end of partitions, by number: some at a time, each partition's in order.

        Columns of records are made before the next ones are asked for; then librdkafka's messages are freed.

        A range is read to its end by the consumer's position, which passes the gaps of compaction and the markers of
        transactions.

        Raises:
            BrokerNotAvailableException: nothing came for as long as there is patience (seconds); read again.
            InvalidOffsetException: the log does not have an offset, or not any more.
            StreamsException: the broker refuses to be read.
        """
        ends = {number: end for number, (start, end) in ranges.items() if start < end}
        if self._open is None:
            self._open = Handle(self._config)
        try:
            yield from self._read(self._open, topic, ends, {number: ranges[number][0] for number in ends})
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free everything. May be called twice, and `read` after it."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _read(self, consumer: Handle, topic: str, ends: dict[int, int], starts: Mapping[int, int]) -> Iterator[Records]:
        consumer.assign({TopicPartition(topic, number): start for number, start in starts.items()})
        positions = dict(starts)
        limit, heard = _FIRST, time.monotonic()
        while ends:
            # A call waits for as many as it asks for.
            left = sum(end - positions[number] for number, end in ends.items())
            count = consumer.consume(self._buffer.ctypes.data, min(limit, left), _TICK)
            addresses = self._buffer[: max(count, 0)]
            found: dict[int, int] = {}
            try:
                if count > 0:
                    messages = self._sorted_out(messages_at(addresses), found)
                    wanted = _wanted(messages, ends, found)
                    if len(wanted):
                        limit = _next_limit(wanted)
                        records = Records(topic, wanted)
                        try:
                            yield records
                        finally:
                            records.give_back()
            finally:
                free(addresses)
            positions |= found
            done = [number for number, end in ends.items() if positions[number] >= end]
            if done:
                consumer.unassign(TopicPartition(topic, number) for number in done)
                for number in done:
                    del ends[number]
            if found:
                heard = time.monotonic()
            elif time.monotonic() - heard > self._patience:
                where = ", ".join(str(TopicPartition(topic, number)) for number in ends)
                raise BrokerNotAvailableException(
                    f"reading {where}: no answer from the broker at {self.address} for {self._patience:g} s"
                )

    def _sorted_out(self, messages: Messages, positions: dict[int, int]) -> Messages:
        """The records; positions at the ends of partitions that were met are added to `positions`."""
        if not messages.errors.any():
            return messages
        events = messages.at(np.flatnonzero(messages.errors))
        rows = zip(events.addresses, events.errors, events.topics, events.partitions, events.offsets, strict=True)
        for address, code, topic, number, offset in (map(int, row) for row in rows):
            partition = TopicPartition(topic_name(topic) if topic else "", number)
            if code == KafkaError._PARTITION_EOF:
                positions[number] = offset
            elif code in INVALID_OFFSET:
                raise InvalidOffsetException(partition)
            elif code not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                raise translated(KafkaError(code, message_reason(address)), f"reading {partition}", self.address)
        return messages.at(np.flatnonzero(messages.errors == 0))


def read_whole(properties: Mapping[str, str], ranges: Mapping[TopicPartition, tuple[int, int]]) -> pa.Table:
    """The records of some ranges, with RAW_SCHEMA; a partition's in order. Raises what RangeReader.read raises."""
    reader, found = RangeReader(properties), [RAW_SCHEMA.empty_table()]
    try:
        for topic in sorted({each.topic for each in ranges}):
            mine = {each.partition: at for each, at in ranges.items() if each.topic == topic}
            for records in reader.read(topic, mine):
                columns = [records.column(name) for name in RAW_SCHEMA.names]
                found.append(pa.Table.from_arrays(columns, schema=RAW_SCHEMA))
    finally:
        reader.close()
    return pa.concat_tables(found)


def shared_reader(properties: Mapping[str, str]) -> RangeReader:
    """This process' reader with these properties, connected as its last use left it."""
    return _readers.setdefault(frozenset(properties.items()), RangeReader(properties))


def _wanted(records: Messages, ends: Mapping[int, int], positions: dict[int, int]) -> Messages:
    """The records below the ends; positions behind the last of each partition are added to `positions`."""
    wanted = np.zeros(len(records), np.bool_)
    for number in np.unique(records.partitions).tolist():
        mine = records.partitions == number
        positions[number] = max(positions.get(number, 0), int(records.offsets[mine].max()) + 1)
        wanted |= mine & (records.offsets < ends.get(number, -1))
    return records if wanted.all() else records.at(np.flatnonzero(wanted))


def _next_limit(records: Messages) -> int:
    """How many records to ask for next, by the size of these."""
    size = int(records.value_lengths.sum()) / len(records)
    return max(1, min(_AT_MOST, int(_TOGETHER / max(size, 1))))
