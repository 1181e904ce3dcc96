"""Questions and orders to the brokers, each with a deadline, in and out as plain values."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.admin.admin_futures import ABSENT_TOPIC, ASK_AGAIN, Answers, listed
from streams_runtime.kafka.admin.connection import (
    FailedAttempt,
    log_failed_attempt,
    unreachable_reason,
    wait_until_answered,
)
from streams_runtime.kafka.admin.group_members import members_of, readers_of
from streams_runtime.kafka.admin.group_offsets import GroupOffsets
from streams_runtime.kafka.admin.partition_offsets import PartitionOffsets
from streams_runtime.kafka.admin.pending_requests import Deletion, TopicListing, TopicLook, UnderWay
from streams_runtime.kafka.admin.topic_list import list_topics
from streams_runtime.kafka.client.librdkafka import remind
from streams_runtime.kafka.client.librdkafka_errors import (
    QuietLog,
    error_of,
    reason_of,
    to_confluent,
    translated,
)
from streams_runtime.kafka.types import CreatedTopics, GroupMember, TopicDescription, TopicPartition, TopicSpec
from streams_runtime.retry_backoff import backoff

# Seconds that a broker which accepts connections has to answer the first question.
_ANSWER_TIMEOUT = 5.0

# Seconds that a question has that nobody waits for; the next one goes to another broker.
_LOOK_TIMEOUT = 8.0

U = TypeVar("U", bound=UnderWay)


class Admin:
    """The brokers' administrative side. Safe to use from several threads.

    Every method blocks for at most about `timeout` seconds a request and raises BrokerNotAvailableException
    when the brokers do not answer (try again), ConfigException when they refuse the login or the right
    (correct the settings), StreamsException for anything else. All of them may be repeated.
    """

    def __init__(self, properties: Mapping[str, str], timeout: float = 30.0) -> None:
        """`properties` come from `client_properties`; `timeout` is in seconds. Does not connect yet."""
        self.address = properties["bootstrap.servers"]
        self._properties = properties
        self._last_error: KafkaError | None = None
        self._config: dict[str, Any] = {
            "reconnect.backoff.max.ms": "1000",
            **properties,
            "error_cb": self._note_error,
        }
        self._open: AdminClient | None = AdminClient(self._config, logger=QuietLog())
        self._answers = Answers(self, lambda: self._client, timeout)
        self._partition_offsets = PartitionOffsets(self._answers, self.address, self.partition_counts)
        self._group_offsets = GroupOffsets(properties, timeout)
        self._under_way: weakref.WeakSet[UnderWay] = weakref.WeakSet()
        self._under_way_lock = threading.Lock()

    @property
    def _timeout(self) -> float:
        return self._answers.timeout

    def within(self, seconds: float) -> AbstractContextManager[None]:
        """All that is asked inside shares these seconds; what is asked when they have passed has one second each.

        For an Admin that one thread uses. Committed offsets are not counted.
        """
        return self._answers.within(seconds)

    @property
    def _client(self) -> AdminClient:
        if self._open is None:
            raise BrokerNotAvailableException(f"the connection to {self.address} is closed; make a new one")
        remind(self._open, self.address)
        return self._open

    def close(self) -> None:
        """Closes all connections; may be called twice. Questions after it raise BrokerNotAvailableException."""
        self._group_offsets.close()
        self._open = None  # librdkafka's threads and sockets end with the object
        with self._under_way_lock:
            for each in self._under_way:
                each.let_go()

    def wait_for_broker(
        self,
        on_failure: Callable[[FailedAttempt], None] = log_failed_attempt,
        should_stop: Callable[[], bool] = lambda: False,
        timeout: float | None = None,
    ) -> bool:
        """Returns True when a broker answers, False when `should_stop` says so first.

        Tries for ever, or for `timeout` seconds and then raises BrokerNotAvailableException. Each failed
        attempt is given to `on_failure`, whose default logs a warning with the address.
        """
        return wait_until_answered(self._ask_for_a_broker, self.address, on_failure, should_stop, timeout)

    def describe_topics(self, names: Collection[str], config: bool = True) -> dict[str, TopicDescription]:
        """The topics of `names` that the brokers have; absent ones are left out.

        With `config` False their configuration is not asked for and stays empty.
        """
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        doing = f"looking up the topics {listed(wanted)}"
        ask = self._answers.question(doing, AdminClient.describe_topics, TopicCollection(wanted))
        found = self._answers.all(ask, doing, absent=ABSENT_TOPIC)
        configs = self.topic_configs(found) if config else {}
        return {
            name: TopicDescription(
                name, len(it.partitions), len(it.partitions[0].replicas), configs.get(name, {}), str(it.topic_id)
            )
            for name, it in found.items()
            # A topic that was deleted between the two questions is absent as well.
            if not config or name in configs
        }

    def topic_configs(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """The configuration of those of the topics that the brokers have, defaults included."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        doing = f"reading the configuration of the topics {listed(wanted)}"
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in wanted]
        ask = self._answers.question(doing, AdminClient.describe_configs, resources)
        found = self._answers.all(ask, doing, absent=ABSENT_TOPIC)
        return {
            resource.name: {name: entry.value for name, entry in entries.items() if entry.value is not None}
            for resource, entries in found.items()
        }

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        """The ids of the topics that the brokers have: a topic that is made anew under its name has another one."""
        return {name: each.id for name, each in self.describe_topics(names, config=False).items()}

    def partition_counts(self, names: Collection[str]) -> dict[str, int]:
        """How many partitions those of the topics have that the brokers have."""
        return {name: each.partitions for name, each in self.describe_topics(names, config=False).items()}

    def look_for(self, names: Collection[str]) -> TopicLook:
        """Asks which of the topics the brokers have, and does not wait for the answer.

        When the look has failed, ask again after `refresh`.
        """
        wanted = list(dict.fromkeys(names))
        doing = f"looking for the topics {listed(wanted)}"
        ask = self._answers.question(doing, AdminClient.describe_topics, TopicCollection(wanted))
        return self._not_waited_for(ask, TopicLook)

    def topic_names(self) -> frozenset[str]:
        """The names of all topics that this login may see, but for the brokers' own."""
        doing = "listing the topics"
        found = self._answers.all(self._answers.question(doing, list_topics), doing)
        return frozenset().union(*found.values())

    def look_for_all(self) -> TopicListing:
        """Asks for the names of all topics, and does not wait, as `look_for` does not."""
        return self._not_waited_for(self._answers.question("listing the topics", list_topics), TopicListing)

    def create_topics(self, topics: Sequence[TopicSpec], validate_only: bool = False) -> CreatedTopics:
        """Makes topics, or with `validate_only` asks the brokers whether they would.

        A topic that exists is reported, not compared. A refusal (a property that Kafka does not know, a
        replication factor above the number of brokers, a missing right) is in the result and not raised; no
        answer is raised, and topics may then have been made or not. Returns when the brokers that were
        asked show what was made, with a leader for each partition, or after another `timeout` seconds.
        """
        if not topics:
            return CreatedTopics(frozenset(), frozenset(), {})
        doing = f"creating the topics {listed([topic.name for topic in topics])}"
        new = [NewTopic(t.name, t.partitions, t.replication_factor, config=dict(t.config)) for t in topics]
        ask = self._answers.question(
            doing,
            AdminClient.create_topics,
            new,
            operation_timeout=self._timeout,
            validate_only=validate_only,
        )
        done, failed = self._answers.once(ask, doing)
        existed = {name for name, error in failed.items() if error.code() == KafkaError.TOPIC_ALREADY_EXISTS}
        refused = {
            name: translated(error, f"creating the topic {name}", self.address)
            for name, error in failed.items()
            if name not in existed
        }
        if not validate_only:
            self._wait_until_led([topic for topic in topics if topic.name in done])
        return CreatedTopics(frozenset(done), frozenset(existed), refused)

    def delete_topics(self, names: Collection[str]) -> None:
        """Deletes topics; those that are not there are left as they are. Returns before the last trace is
        gone.
        """
        wanted = list(dict.fromkeys(names))
        if wanted:
            doing = f"deleting the topics {listed(wanted)}"
            ask = self._answers.question(doing, AdminClient.delete_topics, wanted, operation_timeout=self._timeout)
            self._answers.all(ask, doing, absent=ABSENT_TOPIC)

    def undeletable(self, names: Collection[str]) -> tuple[str, ...]:
        """Those of the topics that the brokers have and that this login may not delete."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return ()
        doing = f"asking for the rights to the topics {listed(wanted)}"
        ask = self._answers.question(
            doing, AdminClient.describe_topics, TopicCollection(wanted), include_authorized_operations=True
        )
        found = self._answers.all(ask, doing, absent=ABSENT_TOPIC)
        # Brokers without an authorizer allow all; a broker that does not say anything forbids nothing either.
        allowed = {name: it.authorized_operations for name, it in found.items()}
        return tuple(name for name, each in allowed.items() if each and AclOperation.DELETE not in each)

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that each partition still has; partitions that the brokers do not have are left
        out.
        """
        return self._partition_offsets.first(partitions)

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The offset after each partition's last record; partitions that the brokers do not have are left
        out.

        With `read_committed` it is the last stable offset: where the oldest open transaction begins.
        """
        return self._partition_offsets.end(partitions, read_committed)

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset of each partition whose record is of that time (ms since 1970) or later; None: there is
        none. Partitions that the brokers do not have are left out.
        """
        return self._partition_offsets.at(times)

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed; partitions without one are left out, as for an unknown
        group.

        So are those that were committed for an earlier topic of the same name.
        """
        committed = self._group_offsets.committed(group, partitions) if partitions else {}
        tagged = {partition.topic for partition, each in committed.items() if each.topic_id is not None}
        return self._group_offsets.of_present_topics(committed, self.topic_ids(tagged) if tagged else {})

    def delete_records(self, before: Mapping[TopicPartition, int]) -> Deletion:
        """Has the records of each partition before the offset given deleted, and does not wait until they are.

        When nobody has answered, ask again after `refresh`.
        """
        doing = f"deleting processed records of {listed([str(partition) for partition in before])}"
        request = [to_confluent(partition, offset) for partition, offset in before.items()]
        ask = self._answers.question(doing, AdminClient.delete_records, request)
        return self._not_waited_for(
            ask, lambda answers, client: Deletion(answers, lambda it: self._answers.translated(it, doing), client)
        )

    def group_members(self, group: str, timeout: float | None = None) -> tuple[GroupMember, ...]:
        """The group's live members with what is assigned to each, by client id; none for an unknown group.

        `timeout` (seconds), where the Admin's own is too long.
        """
        return members_of(self._properties, group, self._timeout if timeout is None else timeout)

    def move_offsets(self, group: str, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]) -> None:
        """Commit the offsets that come next for a group without members, all or none, as those of the topics with
        these ids.

        Raises, beside what all methods raise:
            IllegalStateException: the group has members, and nothing was committed.
        """
        if offsets:
            self._group_offsets.move(group, offsets, topic_ids)

    def readers_of(self, topics: Collection[str], but: str) -> dict[str, tuple[str, ...]]:
        """The groups, other than `but`, that have live members with partitions of these topics, by topic.

        Groups that the login may not see are not among them, nor is who reads without a group.
        """
        return readers_of(self._properties, topics, but, self._timeout) if topics else {}

    def _not_waited_for(self, ask: Any, made: Callable[[Any, AdminClient], U]) -> U:
        with self._under_way_lock:
            client = self._client
            under_way = made(ask(client, min(self._timeout, _LOOK_TIMEOUT)), client)
            self._under_way.add(under_way)
        return under_way

    def _wait_until_led(self, topics: Sequence[TopicSpec]) -> None:
        partitions = [TopicPartition(topic.name, i) for topic in topics for i in range(topic.partitions)]
        end = time.monotonic() + self._timeout
        for delay in backoff(*ASK_AGAIN):
            if len(self.end_offsets(partitions)) == len(partitions) or time.monotonic() > end:
                return
            time.sleep(delay)

    def refresh(self) -> None:
        """Forget who leads what, by a client that is made anew. Called between attempts; of no use to others.

        One that has lost a broker of several may go on asking it, or nobody, however often it is told of the leaders.
        """
        if self._open is not None:
            self._open.poll(0)  # why connections failed, if the question fails in the end
            self._open = AdminClient(self._config, logger=QuietLog())

    def connection_error(self) -> KafkaError | None:
        """Why connections failed since the last call, None if they did not."""
        self._client.poll(0)
        error, self._last_error = self._last_error, None
        return error

    def _ask_for_a_broker(self) -> str | None:
        reason = unreachable_reason(self.address)
        if reason is not None:
            return reason
        self.connection_error()
        try:
            self._client.list_topics(timeout=_ANSWER_TIMEOUT)
        except KafkaException as failure:
            error = self.connection_error() or error_of(failure)
            return reason_of(error) if error else str(failure)
        return None

    def _note_error(self, error: KafkaError) -> None:
        # Every broker being down is what the caller finds out anyway; the reason before it is the
        # interesting one.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last_error = error
