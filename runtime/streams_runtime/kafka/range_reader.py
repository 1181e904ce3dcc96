"""Reads ranges of offsets, outside of any group: in whichever process is told to, such as Spark's Python workers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from operator import is_not
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, Message
from numpy.typing import NDArray

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.foreign import QuietLog, offset_of, to_confluent, translated
from streams_runtime.kafka.invalid_offset import INVALID_OFFSET, InvalidOffsetException
from streams_runtime.kafka.types import TopicPartition

_TICK = 0.2  # seconds that one call waits for records
_PATIENCE = 30.0  # seconds without any answer after which the broker counts as away
_FIRST, _AT_MOST = 100, 20_000  # records of one call: until it is known how large they are, and then
_TOGETHER = 16 * 1024 * 1024  # bytes of values that one call is to bring
_Numbers = NDArray[np.int64]
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
        self._config: dict[str, Any] = {
            # Under exactly once the properties say read_committed.
            "isolation.level": "read_uncommitted",
            # What is fetched ahead of what is read: more of it is thrown away where a range ends.
            "queued.max.messages.kbytes": "16384",
            "queued.min.messages": "20000",
            # Milliseconds until it is looked again whether more is to be fetched; 1,000 would be of idleness.
            "fetch.queue.backoff.ms": "5",
            **properties,
            "group.id": "ranges",  # librdkafka wants one; it is never joined and nothing is committed
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
        self._open: Consumer | None = None

    def read(self, topic: str, ranges: Mapping[int, tuple[int, int]]) -> Iterator[Sequence[Message]]:
        """The records start <= offset < end of partitions, by number: some at a time, each partition's in order.

        A range is read to its end by the consumer's position, which passes the gaps of compaction and the markers of
        transactions.

        Raises:
            BrokerNotAvailableException: nothing came for as long as there is patience (seconds); read again.
            InvalidOffsetException: the log does not have an offset, or not any more.
            StreamsException: the broker refuses to be read.
        """
        ends = {number: end for number, (start, end) in ranges.items() if start < end}
        if self._open is None:
            self._open = Consumer(self._config, logger=QuietLog())
        try:
            yield from self._read(self._open, topic, ends, {number: ranges[number][0] for number in ends})
            self._open.unassign()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free everything. May be called twice, and `read` after it."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _read(
        self, consumer: Consumer, topic: str, ends: dict[int, int], starts: Mapping[int, int]
    ) -> Iterator[Sequence[Message]]:
        consumer.assign([to_confluent(TopicPartition(topic, number), start) for number, start in starts.items()])
        positions = dict(starts)
        limit, heard = _FIRST, time.monotonic()
        while ends:
            # A call waits for as many as it asks for.
            left = sum(end - positions[number] for number, end in ends.items())
            messages = consumer.consume(min(limit, left), _TICK)
            found, records = self._sorted_out(messages)
            if records:
                numbers, offsets = _places(records)
                for number in np.unique(numbers).tolist():
                    found[number] = max(found.get(number, 0), int(offsets[numbers == number].max()) + 1)
                before = np.array([ends.get(number, -1) for number in range(int(numbers.max()) + 1)])
                wanted = offsets < before[numbers]
                if not wanted.all():
                    records = [records[row] for row in np.flatnonzero(wanted).tolist()]
            positions |= found
            done = [number for number, end in ends.items() if positions[number] >= end]
            if done:
                consumer.incremental_unassign([to_confluent(TopicPartition(topic, number)) for number in done])
                for number in done:
                    del ends[number]
            if records:
                yield records
                limit = _next_limit(records)
            if found:
                heard = time.monotonic()
            elif time.monotonic() - heard > self._patience:
                where = ", ".join(str(TopicPartition(topic, number)) for number in ends)
                raise BrokerNotAvailableException(
                    f"reading {where}: no answer from the broker at {self.address} for {self._patience:g} s"
                )

    def _sorted_out(self, messages: Sequence[Message]) -> tuple[dict[int, int], Sequence[Message]]:
        """Positions at the ends of partitions that were met, and the records."""
        if not any(map(is_not, map(Message.error, messages), repeat(None))):
            return {}, messages
        events = [message for message in messages if message.error() is not None]
        positions: dict[int, int] = {}
        for event in events:
            self._note(event, positions)
        return positions, [message for message in messages if message.error() is None]

    def _note(self, event: Message, positions: dict[int, int]) -> None:
        error, partition = event.error(), TopicPartition(event.topic() or "", event.partition() or 0)
        assert error is not None  # that is what makes it an event
        if error.code() == KafkaError._PARTITION_EOF:
            positions[partition.partition] = offset_of(event)
        elif error.code() in INVALID_OFFSET:
            raise InvalidOffsetException(partition)
        elif not error.retriable() and error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
            raise translated(error, f"reading {partition}", self.address)


def shared_reader(properties: Mapping[str, str]) -> RangeReader:
    """This process' reader with these properties, connected as its last use left it."""
    return _readers.setdefault(frozenset(properties.items()), RangeReader(properties))


def _places(records: Sequence[Message]) -> tuple[_Numbers, _Numbers]:
    """Partitions and offsets."""
    count = len(records)
    numbers = np.fromiter(map(Message.partition, records), np.int64, count)
    return numbers, np.fromiter(map(Message.offset, records), np.int64, count)


def _next_limit(records: Sequence[Message]) -> int:
    """How many records to ask for next, by the size of these."""
    size = sum(map(len, filter(None, map(Message.value, records)))) / len(records)
    return max(1, min(_AT_MOST, int(_TOGETHER / max(size, 1))))
