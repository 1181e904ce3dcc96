"""A thread's membership in the application's consumer group, and the records that it fetches."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message

from streams_runtime.errors import BrokerNotAvailableException, UnreleasedInstanceIdException
from streams_runtime.kafka.admin.group_offsets import NO_IDS, commit_request
from streams_runtime.kafka.client.bounded import OverdueError, bounded
from streams_runtime.kafka.client.librdkafka import remind
from streams_runtime.kafka.client.librdkafka_errors import (
    from_confluent,
    offset_of,
    partition_of,
    reason_of,
    to_confluent,
    translated,
)
from streams_runtime.kafka.consumer.unheard_assignment import HeartbeatLog
from streams_runtime.kafka.types import TopicPartition

_LOGGER = logging.getLogger("streams_runtime.kafka")
_COMMIT_PATIENCE = 10.0  # seconds of failed commits after which a line says so
_CLOSE_SECONDS = 30.0
_COMPANY = 0.01  # seconds that a first record waits for more
_WARN_AGAIN = 30.0  # seconds between two lines that say the brokers are away
_RETRY = 0.5  # seconds between attempts to commit
_HURRY = 0.2  # seconds between two heartbeats of a member that hurries
# The member's epoch moved on while it was busy: a poll brings it up to date, then the commit holds.
_STALE = frozenset({KafkaError.STALE_MEMBER_EPOCH, KafkaError.REBALANCE_IN_PROGRESS})
# Waiting does not help: a right is missing, or librdkafka has given up.
_REFUSED = frozenset({KafkaError._FATAL, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED})
_UNDECIDED = KafkaError(KafkaError._IN_PROGRESS)
_REJOIN = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_MEMBER_EPOCH, KafkaError.ILLEGAL_GENERATION})

MemberMetadata = Any
"""librdkafka's own form of a member's identity; only handed on."""


@dataclass(frozen=True, slots=True)
class Membership:
    """Who a member is: the group, its static name, and the client id that other instances read from the
    group.
    """

    group: str
    instance_id: str
    client_id: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records in offset order within each partition, and where the partitions end whose end came with them.

    An end is past transaction markers and the gaps of compaction, which the last record is not.
    """

    records: list[Message]
    ends: dict[TopicPartition, int]


class GroupConsumer:
    """Member of a KIP-848 consumer group with the range assignor. One thread uses it.

    Rebalances arrive inside `fetch` and `poll`: first `on_revoked`, then `on_assigned`, each with what
    changed. Partitions start paused; `resume` gives where to go on from.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        membership: Membership,
        on_assigned: Callable[[frozenset[TopicPartition]], None],
        on_revoked: Callable[[frozenset[TopicPartition]], None],
    ) -> None:
        self.address = properties["bootstrap.servers"]
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._abandoned = False
        self._fatal: KafkaError | None = None
        self._unprocessed: list[Message] = []
        self._ends: dict[TopicPartition, int] = {}
        self._commits_unanswered = 0
        self._commit_answer: KafkaError | None = None
        self._warned_at = float("-inf")
        self._topics: Collection[str] = ()
        self._asked_at = float("-inf")
        self._membership = membership
        config: dict[str, Any] = {
            # As Kafka Streams reads under at_least_once, and as Spark's own reading does. Under exactly once the
            # properties say read_committed.
            "isolation.level": "read_uncommitted",
            # Fetch a partition again when what was fetched of it is taken up, and look for that every 10 ms. Otherwise
            # each record that arrives is fetched by a request of its own, which cost the broker two fifths of a
            # processor at 1,000 records a second; a batch of what waited meanwhile is fetched by one.
            "queued.min.messages": "1",
            "fetch.queue.backoff.ms": "10",
            **properties,
            "group.id": membership.group,
            "group.protocol": "consumer",
            "group.remote.assignor": "range",
            "group.instance.id": membership.instance_id,
            "client.id": membership.client_id,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # `error` would leave the partition in a state in which librdkafka refuses to seek.
            "auto.offset.reset": "earliest",
            "error_cb": self._note_error,
            "on_commit": self._note_commit,
        }
        self._log = HeartbeatLog()
        self._consumer = Consumer(config, logger=self._log)
        self.assigned: frozenset[TopicPartition] = frozenset()
        """The partitions that were assigned and not revoked."""

    @property
    def unheard(self) -> int:
        """How many heartbeats have had no answer in time; unheard.py says why that matters."""
        return self._log.unheard

    def subscribe(self, topics: Collection[str]) -> None:
        """Join the group for these topics; the assignment comes with a later `poll`."""
        self._topics, self._asked_at = topics, time.monotonic()
        self._consumer.subscribe(
            sorted(topics), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def hurry(self) -> None:
        """Ask the group at once what it assigns; a member hears of it by its next heartbeat, up to 5 s later.

        librdkafka sends one when it is given a subscription, the same one too. May be called at every turn of a loop.
        """
        if self._topics and time.monotonic() - self._asked_at >= _HURRY:
            self.subscribe(self._topics)

    def poll(self, wait: float = 0) -> None:
        """Take part in the group for at most `wait` seconds; a record that comes with it is kept for the next `fetch`.

        Raises:
            UnreleasedInstanceIdException: the static name still belongs to an earlier process; join again
            later.
        """
        self._see_to_connection()
        message = self._consumer.poll(wait)
        if message is not None and self._check(message):
            self._unprocessed.append(message)

    def fetch(self, limit: int, wait: float) -> Fetched:
        """Records of resumed partitions: waits up to `wait` seconds for the first, takes at most `limit`.

        A log that does not have the offset that comes next is read from its beginning: records and ends may lie before
        the positions that were asked for.
        """
        self._see_to_connection()
        messages, self._unprocessed = self._unprocessed, []
        if not messages:
            messages = self._consumer.consume(1, wait)
        if messages and limit > len(messages):
            messages += self._consumer.consume(limit - len(messages), _COMPANY)
        records = [message for message in messages if self._check(message)]
        ends, self._ends = self._ends, {}
        return Fetched(records, ends)

    def resume(self, positions: Mapping[TopicPartition, int]) -> None:
        """Fetch these partitions from the given offsets on."""
        self._drop_fetched()
        for partition, offset in positions.items():
            self._consumer.seek(to_confluent(partition, offset))
        self._consumer.resume([to_confluent(partition) for partition in positions])

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Stop fetching these partitions; what was fetched of them and not handed out is dropped."""
        self._drop_fetched()
        self._consumer.pause([to_confluent(partition) for partition in partitions])

    def _drop_fetched(self) -> None:
        self._unprocessed.clear()
        self._ends.clear()

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        should_stop: Callable[[], bool],
        topic_ids: Mapping[str, str] = NO_IDS,
    ) -> bool:
        """Commit the offsets that come next, as those of the topics with these ids; waits while the broker is away.

        False when the group has given the partitions to others, or `should_stop` said so first: then
        whoever has them now reads the records again.

        Raises:
            StreamsException: the broker refuses the commit for another reason.
        """
        request = commit_request(offsets, topic_ids)
        since = time.monotonic()
        while True:
            error = self._commit_once(request, should_stop)
            if error is None:
                return True
            if error is _UNDECIDED or error.code() in _REJOIN:
                return False
            failed = translated(error, f"committing the offsets of {len(request)} partitions", self.address)
            if error.code() not in _STALE and not isinstance(failed, BrokerNotAvailableException):
                raise failed
            if time.monotonic() - since > _COMMIT_PATIENCE:
                since = time.monotonic()
                _LOGGER.warning("%s", failed)
            if should_stop():
                return False
            self.poll(_RETRY)

    def _commit_once(self, request: list[Any], should_stop: Callable[[], bool]) -> KafkaError | None:
        """The broker's answer to one commit; None when it holds, _UNDECIDED when told to stop before it came.

        A synchronous commit would not hear `should_stop` for as long as librdkafka looks for the coordinator. An
        earlier commit that was given up still goes to the broker when it is back, and might arrive after this one
        and take the offsets back: its answer comes first.
        """
        while self._commits_unanswered:
            if should_stop():
                return _UNDECIDED
            self.poll(_COMPANY)
        self._consumer.commit(offsets=request, asynchronous=True)
        self._commits_unanswered += 1
        while self._commits_unanswered:
            self.poll(_COMPANY)
            if should_stop():
                break
        return _UNDECIDED if self._commits_unanswered else self._commit_answer

    def _note_commit(self, error: KafkaError | None, partitions: list[Any]) -> None:
        self._commits_unanswered -= 1
        failed = [each.error for each in partitions if each.error is not None]
        self._commit_answer = error or (failed[0] if failed else None)

    def metadata(self) -> MemberMetadata:
        """Who this member is to the group at present, for the offsets of a transaction (KIP-447)."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leave the group as a static member: the partitions wait for this member until its session ends.

        Returns within half a minute. A consumer that librdkafka does not close is left to itself: the group misses it
        at the end of its session.
        """
        try:
            bounded(self._consumer.close, _CLOSE_SECONDS)
        except OverdueError:
            self._abandoned = True
            _LOGGER.warning(
                "the consumer %s was not closed within %g s and is left to itself",
                self._membership.client_id,
                _CLOSE_SECONDS,
            )

    def _assigned(self, consumer: Consumer, partitions: list[Any]) -> None:
        for each in partitions:
            # Not read from here: resume() seeks. Without an offset librdkafka first asks for the committed one, and
            # refuses to seek meanwhile.
            each.offset = 0
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)
        found = frozenset(from_confluent(each) for each in partitions)
        self.assigned |= found
        self._on_assigned(found)

    def _revoked(self, consumer: Consumer, partitions: list[Any]) -> None:
        if self._abandoned:
            return  # its owner has gone on
        found = frozenset(from_confluent(each) for each in partitions)
        self.assigned -= found
        self._on_revoked(found)
        consumer.incremental_unassign(partitions)

    def _note_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() in _REFUSED:
            self._fatal = error
        elif error.code() == KafkaError._ALL_BROKERS_DOWN and time.monotonic() - self._warned_at > _WARN_AGAIN:
            self._warned_at = time.monotonic()
            _LOGGER.warning("no broker at %s answers; waiting for it, nothing is lost", self.address)
        else:
            _LOGGER.debug("consumer %s: %s", self._membership.client_id, reason_of(error))

    def _check(self, message: Message) -> bool:
        """Whether the message is a record; notes ends of partitions, and raises what ends the membership."""
        error = message.error()
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self._ends[partition_of(message)] = offset_of(message)
            return False
        if error.fatal() or error.code() in _REFUSED:
            self._fatal = error
            self._raise_fatal()
        _LOGGER.debug("consumer %s: %s", self._membership.client_id, reason_of(error))
        return False

    def _see_to_connection(self) -> None:
        self._raise_fatal()
        remind(self._consumer, self.address)

    def _raise_fatal(self) -> None:
        error = self._fatal
        if error is None:
            return
        text = error.str() or ""
        if error.code() == KafkaError.UNRELEASED_INSTANCE_ID or "instance ID is still used" in text:
            raise UnreleasedInstanceIdException(
                f"the group {self._membership.group} still counts {self._membership.instance_id} as a member: an"
                " earlier process ended without leaving, or another one runs under this name. Joining again until"
                " the session of that member has ended"
            )
        raise translated(error, f"taking part in the group {self._membership.group}", self.address)
