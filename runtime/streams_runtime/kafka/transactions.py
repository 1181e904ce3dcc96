"""Output under exactly once: records and input offsets in one transaction of Kafka's (KIP-98, KIP-447)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from streams_runtime.errors import (
    BrokerNotAvailableException,
    ProducerException,
    StreamsException,
    TaskMigratedException,
)
from streams_runtime.kafka.foreign import error_of, reason_of
from streams_runtime.kafka.group_consumer import MemberMetadata
from streams_runtime.kafka.group_offsets import NO_IDS, commit_request
from streams_runtime.kafka.producer import BatchProducer, Headers
from streams_runtime.kafka.transaction_errors import (
    BrokerFailedException,
    StaleMemberException,
    UntoldException,
    judged,
)
from streams_runtime.kafka.types import TopicPartition

_LOGGER = logging.getLogger("streams_runtime.kafka")
# Milliseconds, counted from a transaction's first record. Of an instance that is gone for good, an open transaction
# holds up whoever takes over its tasks, and all who read its output. An instance is missed after 45 s by brokers'
# defaults, so that taking over waits no longer for this; and a large batch is written in a tenth of it.
_TIMEOUT = "30000"
_SETTING = "transaction.timeout.ms"
_TICK = 0.2  # seconds between two looks at `should_stop`
_GRACE = 2.0  # seconds that a step has all the same, so that a close in the midst of one leaves nothing undecided
_PATIENCE = 10.0  # seconds of waiting after which, and then again after which, a line says so
_INIT_SECONDS = 5.0  # for the start of transactions; after that, the thread looks after the group meanwhile
_ABORT_SECONDS = 5.0  # that an abort has; after that, a new producer does it when it begins
_CLOSE_SECONDS = 2.0  # that an abort has at the end; after that, the brokers or the successor abort


def transaction_seconds(properties: Mapping[str, str]) -> float:
    """How long a transaction may take, from its first record on, before the brokers abort it."""
    return int(properties.get(_SETTING, _TIMEOUT)) / 1000


class TransactionalProducer(BatchProducer):
    """Writes batches in transactions: `begin`, `send`, `flush`, `add_offsets`, `commit`; else `abort`.

    One thread uses it. Each call may raise, besides what it says itself:
        ProducerFencedException: close this producer and make another one. Whether the transaction was committed is
            not known, so the tasks have to be revived from their changelogs.
        BrokerNotAvailableException: abort, and process the batch again when the broker is back.
        ProducerException: told to stop, or a record can't be written.
        ConfigException: the brokers refuse this user or a setting.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        client_id: str,
        transactional_id: str,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """`transactional_id` is the same for every process that stands for this thread. Does not connect yet."""
        self.transactional_id = transactional_id
        timeout = properties.get(_SETTING, _TIMEOUT)
        super().__init__(
            properties,
            client_id,
            should_stop,
            # A record that waits longer than its transaction may last is of no use.
            {"transactional.id": transactional_id, "transaction.timeout.ms": timeout, "message.timeout.ms": timeout},
        )
        self._initialised = False
        self._open = False
        self._spent = False
        self._untold: StreamsException | None = None

    def initialise(self) -> None:
        """Fence the predecessors with this transactional id and end their transaction; does nothing the second time.

        Before anything is restored: an open transaction of a predecessor ends only now, or by its time-out.
        """
        if self._spent:
            # librdkafka can mend most failures by itself, but not all, and not all of them at all times. A new one
            # starts from what the brokers know.
            self._discard()
            self._producer, self._spent, self._initialised = self._made(), False, False
        if not self._initialised:
            if not self._turn("starting transactions", self._producer.init_transactions, _INIT_SECONDS):
                raise BrokerNotAvailableException(
                    f"no answer from the broker at {self.address} to the start of transactions of"
                    f" {self.transactional_id}. Check that it runs; asking again"
                )
            self._initialised = True

    def begin(self) -> None:
        """Begin a transaction."""
        self.initialise()
        self._forget_failures()
        self._untold = None
        self._turn("beginning a transaction", lambda _: self._producer.begin_transaction())
        self._open = True

    def send(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        partition: int | None = None,
        headers: Sequence[Headers | None] | None = None,
        placed_by: Sequence[bytes | None] | None = None,
    ) -> None:
        """As BatchProducer; of a transaction that has failed, `add_offsets` says why."""
        try:
            super().send(topic, keys, values, timestamps, partition, headers, placed_by)
        except UntoldException as failure:
            self._untold = failure

    def flush(self) -> None:
        """As BatchProducer; of a transaction that has failed, `add_offsets` says why."""
        try:
            super().flush()
        except UntoldException as failure:
            self._untold = failure

    def add_offsets(
        self, offsets: Mapping[TopicPartition, int], member: MemberMetadata, topic_ids: Mapping[str, str] = NO_IDS
    ) -> None:
        """Put the offsets that come next, of the topics with these ids, into the transaction, in the name of the
        group's member.

        Raises:
            StaleMemberException: abort, take part in the group, and process the batch again.
            TaskMigratedException: the group counts this member out; others may have its partitions already.
        """
        request = commit_request(offsets, topic_ids)
        self._turn(
            f"putting the offsets of {len(request)} partitions into a transaction",
            lambda timeout: self._producer.send_offsets_to_transaction(request, member, timeout),
        )
        if self._untold is not None:
            raise ProducerException(f"{self._untold}, and it does not") from self._untold

    def commit(self) -> None:
        """Commit the transaction. It holds then; its markers may follow a moment later.

        Raises:
            TaskMigratedException: whether it holds is not known; as for a producer that was fenced.
        """
        try:
            self._turn("committing a transaction", self._producer.commit_transaction)
        except (BrokerNotAvailableException, UntoldException, BrokerFailedException) as failure:
            # The brokers may have committed it, and only their answer was lost: an abort comes too late then. Or they
            # were ending it by themselves, its time being over: then it happens that they know no answer to a commit.
            raise TaskMigratedException(
                f"{failure}. Whether it was committed is not known, so the tasks are closed and revived from their"
                " changelogs"
            ) from failure
        self._open = False

    def abort(self) -> None:
        """Give the open transaction up, if there is one; raises nothing."""
        if not self._open:
            return
        self._open = False
        if not self._spent:
            with suppress(StreamsException):
                self._spent = not self._turn("aborting a transaction", self._producer.abort_transaction, _ABORT_SECONDS)

    def close(self) -> None:
        """Give up what is open and free everything. Returns within seconds; may be called twice."""
        if self._open and not self._closed:
            with suppress(KafkaException):
                self._producer.abort_transaction(_CLOSE_SECONDS)
        super().close()

    def _free(self) -> None:
        # The binding's close() would first wait for an open transaction's abort, however long the broker is away.
        del self._producer

    def _turn(self, doing: str, step: Callable[[float], Any], seconds: float = float("inf")) -> bool:
        """Take a step of the transaction, again while librdkafka is not through with it; False after `seconds`."""
        doing = f"{doing} of {self.transactional_id}"
        started = warned = time.monotonic()
        while True:
            try:
                step(_TICK)
            except KafkaException as failure:
                error = error_of(failure)
                if error is None or not error.retriable() or error.txn_requires_abort():
                    reason = reason_of(error) if error else str(failure)
                    raise self._judged(error, f"{doing} failed: {reason}") from failure
            else:
                return True
            now = time.monotonic()
            if now - started > _GRACE and self._should_stop():
                raise ProducerException(
                    f"stopped while {doing} waited for the broker at {self.address}; what was not committed of this"
                    " batch is read again at the next start"
                )
            if now - started > seconds:
                return False
            if now - warned > _PATIENCE:
                warned = now
                _LOGGER.warning("%s waits for the broker at %s", doing, self.address)
            self._heard(self._producer.poll, 0.01)  # librdkafka says some things at once, others after _TICK

    def _judged(self, error: KafkaError | None, text: str) -> StreamsException:
        failure = judged(error, text, self.address)
        # The group's refusals are no failures of the producer.
        self._spent = self._spent or type(failure) not in (StaleMemberException, TaskMigratedException)
        return failure
