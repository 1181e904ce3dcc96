"""Reads the topics of global tables in full, outside of any group: which partitions, from where, and how far."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.types import TopicDescription, TopicPartition
from streams_runtime.restore import restore_log
from streams_runtime.restore.global_restore_start import global_beginning
from streams_runtime.restore.restore_listener import StateRestoreListener
from streams_runtime.restore.restore_start import Log, Offsets
from streams_runtime.state.global_store import GlobalStore

_LOGGER = logging.getLogger("streams_runtime.restore")
_LOOK_SECONDS = 3.0  # between two looks at the topics
_BATCH_RECORDS = 50_000


class Brokers(Offsets, Protocol):
    """Answers what topics are like (kafka.admin.kafka_admin.Admin)."""

    def describe_topics(self, names: Collection[str], config: bool = True) -> dict[str, TopicDescription]: ...


@dataclass(slots=True)
class Followed:
    """A global table's topic and how far its store has come: the offset that comes next, by partition.

    `topic_id` is that of the topic that is read; None while there is none. `ends`: what is to be read before the table
    counts as complete.
    """

    topic: str
    store: GlobalStore
    topic_id: str | None = None
    positions: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    restored: dict[int, int] = field(default_factory=dict)


class GlobalTopics:
    """One consumer for all global tables. One thread uses it.

    With `read_committed`, which the consumer's properties have to say too, a partition ends where its oldest open
    transaction begins.
    """

    def __init__(
        self,
        consumer: ChangelogConsumer,
        brokers: Brokers,
        stores: Iterable[GlobalStore],
        listener: StateRestoreListener,
        read_committed: bool,
        poll_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._consumer = consumer
        self._brokers = brokers
        self._followed = {store.changelog.topic: Followed(store.changelog.topic, store) for store in stores}
        self._listener = listener
        self._read_committed = read_committed
        self._poll_seconds = poll_seconds
        self._clock = clock
        self._look_at = 0.0

    @property
    def followed(self) -> Mapping[str, Followed]:
        """The tables by their topics."""
        return self._followed

    @property
    def complete(self) -> bool:
        """Whether all that the topics had at the start is in the stores."""
        return not any(each.ends for each in self._followed.values())

    def begin(self) -> tuple[str, ...]:
        """Find where to begin in each topic; returns the topics that are not there, in which case nothing has begun.

        A store that can't be gone on from is emptied.

        Raises:
            BrokerNotAvailableException: call again.
            ProcessorStateException: a store can't be emptied or written.
        """
        found = self._brokers.describe_topics(self._followed, config=False)
        if missing := tuple(topic for topic in self._followed if topic not in found):
            return missing
        logs = {topic: self._logs(topic, range(it.partitions)) for topic, it in found.items()}
        for topic, each in self._followed.items():
            self._begin(each, found[topic].id, logs[topic])
        self._look_at = self._clock() + _LOOK_SECONDS
        return ()

    def poll(self) -> dict[str, list[Any]]:
        """Records by topic, in offset order within each partition; waits up to poll.ms for them.

        Raises:
            StreamsException: a log no longer has what comes next, or the brokers refuse to be read.
        """
        self._keep_up_with_topics()
        try:
            records = self._consumer.poll(_BATCH_RECORDS, self._poll_seconds)
        except (InvalidOffsetException, StreamsException) as failure:
            self._look_at = 0.0
            if self._keep_up_with_topics():
                return {}
            if isinstance(failure, InvalidOffsetException):
                raise self._lost(failure.partition) from failure
            raise
        found: dict[str, list[Any]] = {}
        for partition, messages in records.items():
            found.setdefault(partition.topic, []).extend(messages)
        return found

    def reached(self, topic: str) -> dict[int, int]:
        """Where each partition of the topic is read up to, transaction markers and gaps of compaction included."""
        each = self._followed[topic]
        read = {number: self._consumer.position(TopicPartition(topic, number)) for number in each.positions}
        return {number: max(at or 0, each.positions[number]) for number, at in read.items()}

    def note(self, topic: str, positions: Mapping[int, int], records: Mapping[int, int]) -> None:
        """The store has all before these positions; `records`: how many it was given, by partition."""
        each = self._followed[topic]
        each.positions |= positions
        for number, end in list(each.ends.items()):
            partition, name = TopicPartition(topic, number), each.store.name
            if count := records.get(number, 0):
                each.restored[number] = each.restored.get(number, 0) + count
                self._listener.on_batch_restored(partition, name, positions[number], count)
            if each.positions[number] >= end:
                del each.ends[number]
                self._listener.on_restore_end(partition, name, each.restored.pop(number, 0))

    def _lost(self, partition: TopicPartition) -> StreamsException:
        each = self._followed[partition.topic]
        return StreamsException(
            f"the log of {partition} does not have the offset {each.positions[partition.partition]} any more, at which"
            f" the global store {each.store.name} goes on: what was deleted there may still be in the store. Start the"
            " client anew, which builds the store anew from the whole topic"
        )

    def _begin(self, each: Followed, topic_id: str, logs: Mapping[int, Log]) -> None:
        store = each.store
        begin = global_beginning(store.offsets(), store.topic_id(), logs, store.is_empty())
        if begin.wipe is not None:
            restore_log.wiped(store.name, TopicPartition(each.topic, 0), begin.wipe)
            store.wipe()
        store.follow(topic_id)
        each.topic_id, each.positions = topic_id, dict(begin.offsets)
        each.ends = {number: log.limit for number, log in logs.items() if begin.offsets[number] < log.limit}
        for number, end in each.ends.items():
            self._listener.on_restore_start(TopicPartition(each.topic, number), store.name, each.positions[number], end)
        self._consumer.add({TopicPartition(each.topic, number): at for number, at in each.positions.items()})

    def _logs(self, topic: str, numbers: Iterable[int]) -> dict[int, Log]:
        """The logs of all partitions. Raises BrokerNotAvailableException while one has no leader that names it."""
        partitions = [TopicPartition(topic, number) for number in numbers]
        starts = self._brokers.start_offsets(partitions)
        ends = self._brokers.end_offsets(partitions)
        limits = self._brokers.end_offsets(partitions, read_committed=True) if self._read_committed else ends
        ids = self._brokers.topic_ids({topic})
        unnamed = [str(each) for each in partitions if not (each in starts and each in ends and each in limits)]
        if unnamed:
            raise BrokerNotAvailableException(
                f"the brokers do not name the ends of {', '.join(unnamed)} yet, of which a global table is made: their"
                " leaders are being chosen. Asking again"
            )
        return {each.partition: Log(starts[each], ends[each], limits[each], ids.get(topic)) for each in partitions}

    def _keep_up_with_topics(self) -> bool:
        """From time to time: see to topics that have gone, were made anew, or have more partitions; whether any was."""
        if self._clock() < self._look_at:
            return False
        self._look_at = self._clock() + _LOOK_SECONDS
        try:
            found = self._brokers.describe_topics(self._followed, config=False)
        except BrokerNotAvailableException as error:
            _LOGGER.warning("%s", error)
            self._read_anew()  # whatever made somebody look is met again, and looked at, when they are back
            return True
        changed = [self._keep_up_with(each, found.get(topic)) for topic, each in self._followed.items()]
        if any(changed):
            self._read_anew()
        return any(changed)

    def _keep_up_with(self, each: Followed, found: TopicDescription | None) -> bool:
        if found is None:
            if each.topic_id is None:
                return False
            _LOGGER.warning(
                "the topic %s of the global table in the store %s is not on the brokers any more: the table stays as it"
                " is until the topic is back",
                each.topic,
                each.store.name,
            )
            each.topic_id, each.positions = None, {}
            return True
        if each.topic_id != found.id:
            # The store goes on saying of which topic it was made, so that the next start empties it.
            _LOGGER.warning(
                "the topic %s of the global table in the store %s was deleted and made anew: it is read from its"
                " beginning, and what the store had of the old one stays until the client is started anew",
                each.topic,
                each.store.name,
            )
            each.topic_id, each.positions = found.id, {}
        new = range(len(each.positions), found.partitions)
        each.positions |= dict.fromkeys(new, 0)
        return bool(new)

    def _read_anew(self) -> None:
        """With a new consumer, since one that knew a topic goes on with what it knew (librdkafka #4898)."""
        self._consumer.unsubscribe()
        self._consumer.add(
            {
                TopicPartition(each.topic, number): at or None
                for each in self._followed.values()
                for number, at in each.positions.items()
            }
        )
