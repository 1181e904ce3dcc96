"""What consumer groups have committed: asked without joining them, and told apart by the topic it was committed for.

An offset is committed with the id of its topic (KIP-516) as its metadata. A topic that is deleted and made anew under
its name has another id, and its log begins anew; the offset alone would skip as much of the new log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException

from streams_runtime.errors import IllegalStateException
from streams_runtime.kafka.admin.admin_futures import ASK_AGAIN, UNANSWERED, Patience
from streams_runtime.kafka.client.bounded import OverdueError, bounded
from streams_runtime.kafka.client.librdkafka import remind
from streams_runtime.kafka.client.librdkafka_errors import (
    PASSING,
    QuietLog,
    error_of,
    from_confluent,
    to_confluent,
    translated,
)
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.retry_backoff import backoff

_LOGGER = logging.getLogger("streams_runtime.kafka")
_TAG = "topic-id="
T = TypeVar("T")
NO_IDS: Mapping[str, str] = {}
# What a group says to a commit by nobody of it while it has members.
_HAS_MEMBERS = frozenset(
    {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.REBALANCE_IN_PROGRESS,
    }
)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The offset that comes next, and the id of the topic it was committed for; None: by whoever does not say."""

    offset: int
    topic_id: str | None


def commit_request(offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]) -> list[Any]:
    """Offsets in librdkafka's form, each with the id of its topic where that is known."""
    tags = {topic: _TAG + each for topic, each in topic_ids.items()}
    return [to_confluent(partition, offset, tags.get(partition.topic)) for partition, offset in offsets.items()]


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
        self._warned: set[tuple[TopicPartition, str | None]] = set()

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """The offsets that the group has committed; partitions without one are left out, as for an unknown
        group.
        """
        doing = f"reading the committed offsets of the group {group}"
        return self._answer(group, doing, lambda consumer, seconds: _asked(consumer, partitions, seconds))

    def move(self, group: str, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]) -> None:
        """Commit the offsets that come next for a group without members, all or none, as those of the topics with
        these ids.

        Raises:
            IllegalStateException: the group has members, and nothing was committed.
        """
        doing, request = f"setting the offsets of the group {group}", commit_request(offsets, topic_ids)
        try:
            self._answer(group, doing, lambda consumer, seconds: self._commit(group, consumer, request, seconds))
        except _HasMembersError:
            raise IllegalStateException(
                f"the group {group} has members, and so its offsets can't be set. Stop whatever is in it, then try"
                " again"
            ) from None

    def _answer(self, group: str, doing: str, ask: Callable[[Any, float], T]) -> T:
        """What `ask` returns of the group's consumer and the seconds of an attempt; asked again while it may pass."""
        patience = Patience(self._timeout)
        for delay in backoff(*ASK_AGAIN):
            consumer = self._consumer(group)
            try:
                return ask(consumer, patience.attempt)
            except KafkaException as failure:
                error = error_of(failure)
                code = None if error is None else error.code()
                if code not in PASSING | UNANSWERED or patience.left < delay:
                    raise translated(failure, doing, self._properties["bootstrap.servers"]) from failure
            if code in UNANSWERED:
                patience.unanswered()
                self._forget(group, consumer)
            time.sleep(delay)
        raise AssertionError("backoff() never ends")

    def of_present_topics(
        self, committed: Mapping[TopicPartition, CommittedOffset], topic_ids: Mapping[str, str]
    ) -> dict[TopicPartition, int]:
        """The offsets that are not of an earlier topic; each of the others is told once, with a warning."""
        present = {}
        for partition, each in committed.items():
            if each.topic_id in (None, topic_ids.get(partition.topic, each.topic_id)):
                present[partition] = each.offset
            elif (partition, each.topic_id) not in self._warned:
                self._warned.add((partition, each.topic_id))
                _LOGGER.warning(
                    "the topic %s was deleted and made anew since offset %d of %s was committed: it has not been read",
                    partition.topic,
                    each.offset,
                    partition,
                )
        return present

    def close(self) -> None:
        """Closes the connections; may be called twice."""
        with self._lock:
            consumers, self._consumers = self._consumers, {}
        for consumer in consumers.values():
            consumer.close()

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
            remind(self._consumers[group], self._properties["bootstrap.servers"])
            return self._consumers[group]

    def _commit(self, group: str, consumer: Any, request: list[Any], seconds: float) -> None:
        try:
            # Waits beyond every limit for a coordinator that does not come.
            answer = bounded(lambda: consumer.commit(offsets=request, asynchronous=False), seconds)
        except OverdueError as overdue:
            self._forget(group, consumer)  # the call goes on with it
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from overdue
        except KafkaException as failure:
            refusal = error_of(failure)
            if refusal is None or refusal.code() not in _HAS_MEMBERS:
                raise
            raise _HasMembersError from failure
        for error in (each.error for each in answer):
            if error is not None:
                raise _HasMembersError if error.code() in _HAS_MEMBERS else KafkaException(error)

    def _forget(self, group: str, consumer: Any) -> None:
        """One that nobody answered may go on asking a broker that is gone. Other threads may still use it."""
        with self._lock:
            if self._consumers.get(group) is consumer:
                del self._consumers[group]


def _asked(
    consumer: Any, partitions: Collection[TopicPartition], seconds: float
) -> dict[TopicPartition, CommittedOffset]:
    answer = consumer.committed([to_confluent(partition) for partition in partitions], timeout=seconds)
    for each in answer:
        if each.error is not None:
            raise KafkaException(each.error)
    return {from_confluent(each): _taken(each) for each in answer if each.offset >= 0}


class _HasMembersError(Exception):
    """The group has members."""


def _taken(answer: Any) -> CommittedOffset:
    metadata = _metadata(answer)
    return CommittedOffset(answer.offset, metadata.removeprefix(_TAG) if metadata.startswith(_TAG) else None)


def _metadata(answer: Any) -> str:
    """What was committed with the offset; of others (kafka-consumer-groups, Kafka Streams) nothing, or theirs.

    What a Java client wrote has no NUL at its end, librdkafka copies it as it is, and confluent-kafka reads on to the
    first NUL: it is no text then when bytes of somebody else's lie behind it (confluentinc/librdkafka #4649).
    """
    try:
        return answer.metadata or ""
    except UnicodeDecodeError:
        return ""
