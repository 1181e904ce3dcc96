"""Output under exactly once: records and input offsets in one transaction of Kafka's (KIP-98, KIP-447)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from streams_runtime.batch.encode import Headers
from streams_runtime.errors import (
    BrokerNotAvailableException,
    ProducerException,
    StreamsException,
    TaskMigratedException,
)
from streams_runtime.kafka.admin.group_offsets import NO_IDS, commit_request
from streams_runtime.kafka.client.bounded import OverdueError, bounded
from streams_runtime.kafka.client.librdkafka_errors import QuietLog, error_of, reason_of
from streams_runtime.kafka.consumer.group_consumer import MemberMetadata
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.producer.delivery_reports import is_of_absence
from streams_runtime.kafka.producer.transaction_errors import (
    StaleMemberException,
    UntoldException,
    abandoned,
    judged,
)
from streams_runtime.kafka.producer.uncertain_requests import DEBUG, Doubts
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.retry_backoff import backoff_delay

_LOGGER = logging.getLogger("streams_runtime.kafka")
# Milliseconds, counted from a transaction's first record. Of an instance that is gone for good, an open transaction
# holds up whoever takes over its tasks, and all who read its output. An instance is missed after 45 s by brokers'
# defaults, so that taking over waits no longer for this; and a large batch is written in a tenth of it.
_TIMEOUT = "30000"
_SETTING = "transaction.timeout.ms"
_TICK = 0.2  # seconds between two looks at `should_stop`
_GRACE = 2.0  # seconds that a step has all the same, so that a close in the midst of one leaves nothing undecided
_PATIENCE = 10.0  # seconds of waiting after which, and then again after which, a line says so
# Seconds for the start of transactions: first, and at most, twice as many each time. After them the thread looks after
# the group, and another producer asks: one that was told of a coordinator that is going asks for no other one for long.
_INIT_SECONDS = (2.0, 8.0)
_ABORT_SECONDS = 5.0  # that an abort has; after that, a new producer does it when it begins
_CLOSE_SECONDS = 2.0  # that an abort has at the end; after that, the brokers or the successor abort
# Seconds that librdkafka has for offsets, for which it asks another coordinator after half a second. When they are over
# the transaction has failed: that call alone can't be taken up again.
_OFFSETS_SECONDS = 5.0
# Seconds that one call of a step has, though librdkafka is given _TICK. Brokers that choose another coordinator take
# some; whoever reads committed records waits meanwhile.
_CALL_SECONDS = 10.0
# Seconds that offsets have once a broker has left the cluster, which may have been the group's coordinator.
_LEFT_SECONDS = 1.0


def transaction_seconds(properties: Mapping[str, str]) -> float:
    """How long a transaction may take, from its first record on, before the brokers abort it."""
    return int(properties.get(_SETTING, _TIMEOUT)) / 1000


class TransactionalProducer(BatchProducer):
    """Writes batches in transactions: `begin`, `send`, `flush`, `add_offsets`, `commit`; else `abort`.

    No request of one transaction can end, or change, another one, however late it arrives: where an answer was lost,
    the next transaction has another epoch (doubts.py).

    One thread uses it. Each call may raise, besides what it says itself:
        TaskMigratedException: librdkafka does not come back out of a call; it is left to itself, and `initialise` makes
            another one. The tasks have to be revived from their changelogs.
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
            {
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout,
                "message.timeout.ms": timeout,
                # Where all connections are lost librdkafka would else forget its brokers, with what it has asked them:
                # a call would wait for ever (its issues 5456, 5511). A producer that finds no broker is made anew.
                "metadata.recovery.strategy": "none",
                # What Doubts reads.
                "debug": ",".join(filter(None, (properties.get("debug"), DEBUG))),
                "log_level": "7",
            },
        )
        self._initialised = False
        self._unanswered = 0  # starts of transactions in a row
        self._open = False
        self._spent = False
        self._overdue = False
        self._untold: StreamsException | None = None

    def initialise(self) -> None:
        """Fence the predecessors with this transactional id and end their transaction; does nothing the second time,
        unless a request of the last transaction may still be under way.

        Before anything is restored: an open transaction of a predecessor ends only now, or by its time-out.
        """
        if self._initialised and not self._spent:
            self._poll(0)  # lines that say so
            if self._doubts.any:
                _LOGGER.info("an answer to %s was lost; its next transaction has another epoch", self.transactional_id)
                self._spent = True
        if self._spent:
            # librdkafka can mend most failures by itself, but not all, and not all of them at all times. A new one
            # starts from what the brokers know, and has another epoch.
            self._discard()
            self._producer, self._spent, self._overdue, self._initialised = self._made(), False, False, False
        if not self._initialised:
            patience = backoff_delay(self._unanswered, *_INIT_SECONDS)
            if not self._turn("starting transactions", self._method("init_transactions"), patience):
                self._spent = True
                self._unanswered += 1
                raise BrokerNotAvailableException(
                    f"no answer from the broker at {self.address} to the start of transactions of"
                    f" {self.transactional_id}. Check that it runs; asking again"
                )
            self._initialised = True
            self._unanswered = 0

    def begin(self) -> None:
        """Begin a transaction."""
        self.initialise()
        self._failures.forget()
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
        chosen_partitions: Sequence[int | None] | None = None,
    ) -> None:
        """As BatchProducer; of a transaction that has failed, `add_offsets` says why."""
        try:
            super().send(topic, keys, values, timestamps, partition, headers, placed_by, chosen_partitions)
        except UntoldException as failure:
            self._untold = failure

    def partition_count(self, topic: str, more_than: int = 0) -> int:
        """As BatchProducer; of a transaction that has failed, `add_offsets` says why, and every number will do."""
        try:
            return super().partition_count(topic, more_than)
        except UntoldException as failure:
            self._untold = failure
            return more_than + 1

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
            lambda _: self._producer.send_offsets_to_transaction(request, member, _OFFSETS_SECONDS),
            by_group=True,
        )
        if self._untold is not None:
            raise ProducerException(f"{self._untold}, and it does not") from self._untold

    def commit(self) -> None:
        """Commit the transaction. It holds then; its markers may follow a moment later.

        Raises:
            TaskMigratedException: whether it holds is not known: the brokers may have committed it, and only their
                answer was lost, so that an abort would come too late; or they were ending it by themselves, its time
                being over. As for a producer that was fenced.
        """
        self._turn("committing a transaction", self._method("commit_transaction"), is_end=True)
        self._open = False

    def abort(self) -> None:
        """Give the open transaction up, if there is one; raises nothing."""
        if not self._open:
            return
        self._open = False
        if not self._spent:
            with suppress(StreamsException):
                doing, abort = "aborting a transaction", self._method("abort_transaction")
                self._spent = not self._turn(doing, abort, _ABORT_SECONDS)

    def close(self) -> None:
        """Give up what is open and free everything. Returns within seconds; may be called twice."""
        if self._open and not self._closed and not self._overdue:
            abort = partial(self._producer.abort_transaction, _CLOSE_SECONDS)
            try:
                bounded(abort, _CALL_SECONDS)
            except OverdueError as failure:
                self._abandon(failure)
            except KafkaException:
                pass
        super().close()

    def _made(self) -> Producer:
        self._doubts = Doubts()
        return super()._made()

    def _logger(self) -> QuietLog:
        return self._doubts

    def _discard(self) -> None:
        if self._overdue:
            # Whoever is inside of a call may still use it: when that call comes back, it is freed.
            del self._producer
        else:
            super()._discard()

    def _abandon(self, overdue: OverdueError) -> None:
        """Leave the producer to the call that is inside of it, and take in what it says until that comes back: the
        lines would fill the memory.
        """
        self._overdue = self._spent = True
        producer = self._producer

        def listen() -> None:
            while not overdue.came_back.wait(_TICK):
                with suppress(KafkaException):
                    producer.poll(0)

        threading.Thread(target=listen, name=f"{threading.current_thread().name}-abandoned", daemon=True).start()

    def _turn(
        self,
        doing: str,
        step: Callable[[float], Any],
        seconds: float = float("inf"),
        *,
        is_end: bool = False,
        by_group: bool = False,
    ) -> bool:
        """Take a step of the transaction, again while librdkafka is not through with it; False after `seconds`.

        `is_end`: the brokers may have committed, whatever the step comes to. `by_group`: the group's coordinator is
        asked too.
        """
        doing = f"{doing} of {self.transactional_id}"
        started = warned = time.monotonic()
        while True:
            try:
                bounded(
                    partial(step, _TICK),
                    _CALL_SECONDS,
                    lambda: self._stopped_since(started) or (by_group and self._waits_for_one_that_left(started)),
                )
            except OverdueError as failure:
                self._abandon(failure)
                self._raise_if_stopped(doing, started)
                if by_group and self._doubts.left_at is not None:
                    raise BrokerNotAvailableException(
                        f"{doing}: a broker has left the cluster, and librdkafka waits for it. Nothing of this batch"
                        " was committed; it is processed again, with a new producer"
                    ) from failure
                text = (
                    f"{doing}: librdkafka has not come back within {_CALL_SECONDS:g} s, and its producer is abandoned"
                )
                raise abandoned(text, is_end) from failure
            except KafkaException as failure:
                error = error_of(failure)
                if error is None or not error.retriable() or error.txn_requires_abort():
                    reason = reason_of(error) if error else str(failure)
                    raise self._judged(error, f"{doing} failed: {reason}", is_end) from failure
            else:
                return True
            self._raise_if_stopped(doing, started)
            now = time.monotonic()
            if now - started > seconds:
                return False
            if now - warned > _PATIENCE:
                warned = now
                _LOGGER.warning("%s waits for the broker at %s", doing, self.address)
            self._poll(0.01)  # librdkafka says some things at once, others after _TICK

    def _waits_for_one_that_left(self, started: float) -> bool:
        """Whether a call that asks the group's coordinator since then is not to be waited for any longer."""
        with suppress(KafkaException):  # the call itself raises it
            self._producer.poll(0)  # lines that say so
        left_at = self._doubts.left_at
        return left_at is not None and time.monotonic() - max(left_at, started) > _LEFT_SECONDS

    def _stopped_since(self, started: float) -> bool:
        """Whether a step that began then is to be left because of a stop. Always looks, which is a sign of life."""
        return self._should_stop() and time.monotonic() - started > _GRACE

    def _raise_if_stopped(self, doing: str, started: float) -> None:
        if self._stopped_since(started):
            raise ProducerException(
                f"stopped while {doing} waited for the broker at {self.address}; what was not committed of this"
                " batch is read again at the next start"
            )

    def _judged(self, error: KafkaError | None, text: str, is_end: bool = False) -> StreamsException:
        failure = judged(error, text, self.address, is_end)
        if isinstance(failure, ProducerException):
            failure.for_want_of_topic = is_of_absence(error)
        # The group's refusals are no failures of the producer.
        self._spent = self._spent or is_end or type(failure) not in (StaleMemberException, TaskMigratedException)
        return failure
