"""How a batch's output and its input offsets are committed, by the guarantee: the one place where the two differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from streams_runtime.kafka.consumer.group_consumer import GroupConsumer
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.producer.transaction_errors import StaleMemberException
from streams_runtime.kafka.producer.transactions import TransactionalProducer
from streams_runtime.kafka.types import TopicPartition

_CATCH_UP = 0.5  # seconds in the group, after which its new epoch has come


class Commits(Protocol):
    """One commit after the other; each is begun, and then committed or aborted."""

    @property
    def producer(self) -> BatchProducer:
        """What the output of the batch is sent with."""

    @property
    def seconds(self) -> float:
        """How long it may take from `begin` to `commit`; a batch that takes longer is lost."""

    def begin(self) -> None:
        """Before the output is sent.

        Raises:
            BrokerNotAvailableException: nothing is begun; call again.
            ProducerFencedException: see `commit`.
        """

    def flush(self) -> None:
        """Wait until all output is written. Raises as `commit` does."""

    def commit(self, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]) -> bool:
        """Commit the offsets that come next, of the topics with these ids, after `flush`.

        False when it is certain that nothing is committed, and the batch is to be read again by whoever has the
        partitions then.

        Raises:
            BrokerNotAvailableException: `abort`; nothing is committed.
            TaskMigratedException: what is committed is not known (exactly once only); the tasks have to be revived.
            StreamsException: a record can't be written, or told to stop.
        """

    def abort(self) -> None:
        """The batch is given up before its commit. Raises nothing."""


@dataclass(frozen=True, slots=True)
class AtLeastOnce:
    """Output first, then the offsets; a crash in between does the batch again."""

    producer: BatchProducer
    consumer: GroupConsumer
    should_stop: Callable[[], bool]

    @property
    def seconds(self) -> float:
        """Without end."""
        return math.inf

    def begin(self) -> None:
        """Nothing to do."""

    def flush(self) -> None:
        """Commits."""
        self.producer.flush()

    def commit(self, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]) -> bool:
        """Commits."""
        return self.consumer.commit(offsets, self.should_stop, topic_ids)

    def abort(self) -> None:
        """What was sent stays."""


@dataclass(frozen=True, slots=True)
class ExactlyOnce:
    """Output and offsets in one transaction, in the name of the group's member (KIP-447)."""

    producer: TransactionalProducer
    consumer: GroupConsumer
    seconds: float
    """transaction.timeout.ms."""

    def begin(self) -> None:
        """Commits."""
        self.producer.begin()

    def flush(self) -> None:
        """Commits."""
        self.producer.flush()

    def commit(self, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]) -> bool:
        """Commits."""
        try:
            self.producer.add_offsets(offsets, self.consumer.metadata(), topic_ids)
        except StaleMemberException:
            self.producer.abort()
            self.consumer.poll(_CATCH_UP)
            return False
        self.producer.commit()
        return True

    def abort(self) -> None:
        """The brokers' readers of committed records never see what was sent."""
        self.producer.abort()
