"""The restore consumer: reads assigned partitions from given offsets, outside of any group."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message

from streams_runtime.kafka.client.librdkafka import remind
from streams_runtime.kafka.client.librdkafka_errors import (
    QuietLog,
    offset_of,
    partition_of,
    reason_of,
    to_confluent,
    translated,
)
from streams_runtime.kafka.consumer.invalid_offset import INVALID_OFFSET, InvalidOffsetException
from streams_runtime.kafka.types import TopicPartition

_LOGGER = logging.getLogger("streams_runtime.kafka")


def restore_config(properties: Mapping[str, str], client_id: str) -> dict[str, str]:
    """librdkafka's properties for reading changelogs, from those of the application."""
    return {
        # The end that it restores to is the log's. Under exactly once the properties say read_committed: then the
        # position gets there when the open transactions below it are ended, and aborted records never come.
        "isolation.level": "read_uncommitted",
        **properties,
        "group.id": client_id,  # librdkafka wants one; it is never joined and nothing is committed
        "client.id": client_id,
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "enable.partition.eof": "true",
        "auto.offset.reset": "error",
        "queued.max.messages.kbytes": "131072",
        "queued.min.messages": "1000000",
        "fetch.queue.backoff.ms": "5",
        "fetch.max.bytes": "52428800",
        "max.partition.fetch.bytes": "10485760",
    }


class ChangelogConsumer:
    """Reads partitions that it is told to; knows the *position* of each, not only the last record. One
    thread uses it.

    It has connections only while there is something to read. librdkafka goes on asking with the leader epoch of a topic
    that was deleted and made anew, and gets nothing (librdkafka #4898): after `unsubscribe` what it knew is forgotten.

    The position is where the next fetch begins. It passes transaction markers and the gaps of compaction,
    which the last record's offset does not; completion judged by that record would wait for ever
    (quix-streams #1017).
    """

    def __init__(self, properties: Mapping[str, str], client_id: str) -> None:
        self.address = properties["bootstrap.servers"]
        self._config: dict[str, Any] = restore_config(properties, client_id)
        self._open: Consumer | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._kept: list[Message] = []

    def add(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Read these partitions as well, from the given offsets; None is the beginning."""
        if offsets:
            at = {each: OFFSET_BEGINNING if offset is None else offset for each, offset in offsets.items()}
            if self._open is None:
                self._open = Consumer(self._config, logger=QuietLog())
            self._open.incremental_assign([to_confluent(each, offset) for each, offset in at.items()])
            self._positions |= {each: offset for each, offset in offsets.items() if offset is not None}

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """Stop reading these partitions."""
        gone = list(partitions)
        if gone and self._open is not None:
            self._open.incremental_unassign([to_confluent(each) for each in gone])
            for each in gone:
                self._positions.pop(each, None)
            self._kept = [message for message in self._kept if partition_of(message) not in gone]

    def unsubscribe(self) -> None:
        """Stop reading everything, and forget what was learnt about it."""
        self.close()
        self._positions.clear()
        self._kept.clear()

    def end(self, partition: TopicPartition) -> int | None:
        """Where a partition that is read ended at its last fetch; None before the first. Asks nobody."""
        if partition not in self._positions or self._open is None:
            return None
        known = self._open.get_watermark_offsets(to_confluent(partition), cached=True)
        return known[1] if known is not None and known[1] >= 0 else None

    def position(self, partition: TopicPartition) -> int | None:
        """Offset at which the next fetch of the partition begins; None before the first answer."""
        return self._positions.get(partition)

    def poll(self, limit: int, wait: float) -> dict[TopicPartition, list[Message]]:
        """Up to `limit` records by partition, in offset order; waits up to `wait` seconds for them, read or not.

        Raises:
            InvalidOffsetException: a partition's offset is out of range.
            StreamsException: the broker refuses to be read. While it is away nothing comes, and nothing is
            raised.
        """
        if self._open is None:
            time.sleep(wait)
            return {}
        remind(self._open, self.address)
        kept, self._kept = self._kept, []
        messages = kept or self._open.consume(limit, wait)
        records, events = _sorted_out(messages)
        self._note_events(events, messages)
        for partition, found in records.items():
            self._advance(partition, offset_of(found[-1]) + 1)
        return records

    def close(self) -> None:
        """Free everything. May be called twice."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _note_events(self, events: Sequence[Message], messages: Sequence[Message]) -> None:
        """Take in what is not a record: ends of partitions, and errors."""
        for event in events:
            error, partition = event.error(), partition_of(event)
            assert error is not None  # that is what makes it an event
            if error.code() == KafkaError._PARTITION_EOF:
                self._advance(partition, offset_of(event))
            elif error.code() in INVALID_OFFSET:
                # What came with it belongs to other partitions, and will not be fetched again.
                self._kept = [message for message in messages if message is not event]
                raise InvalidOffsetException(partition)
            else:
                self._judge(error, partition)

    def _advance(self, partition: TopicPartition, position: int) -> None:
        self._positions[partition] = max(self._positions.get(partition, 0), position)

    def _judge(self, error: KafkaError, partition: TopicPartition) -> None:
        if error.retriable() or error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
            _LOGGER.debug("restore consumer: %s", reason_of(error))
            return
        raise translated(error, f"reading the changelog {partition}", self.address)


def _sorted_out(messages: Sequence[Message]) -> tuple[dict[TopicPartition, list[Message]], list[Message]]:
    """Records by partition, and what is no record. All of a restoration passes here: one call a record and field."""
    events = [message for message in messages if message.error() is not None]
    if events:
        messages = [message for message in messages if message.error() is None]
    where = zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)
    found: dict[TopicPartition, list[Message]] = {}
    for _, run in groupby(zip(where, messages, strict=True), key=itemgetter(0)):
        part = [message for _, message in run]
        found.setdefault(partition_of(part[0]), []).extend(part)
    return found, events
