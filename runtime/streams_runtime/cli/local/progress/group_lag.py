"""How far the application's group is, by the offsets on the brokers, whether its instances answer or not."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicPartition

_INTERVAL = 0.5  # seconds between two requests
_STOP_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """The brokers' state at one moment: which of the application's topics exist, and offsets of those that it reads.

    `committed` was read before `ends`: records that a committed batch has written are below `ends`.
    """

    topics: frozenset[str]
    committed: Mapping[TopicPartition, int]
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]

    def position(self, partition: TopicPartition) -> int:
        """The offset that the group processes next."""
        return max(self.committed.get(partition, 0), self.starts.get(partition, 0))

    def lag(self, topic: str | None = None) -> int:
        """Records that wait, of one topic or of all."""
        return sum(
            max(end - self.position(each), 0) for each, end in self.ends.items() if topic is None or each.topic == topic
        )


class GroupWatch:
    """Reads a group's progress repeatedly on a thread of its own; `latest` holds the last one."""

    def __init__(
        self, admin: Admin, group: str, inputs: Collection[str], others: Collection[str], stable: Collection[str] = ()
    ) -> None:
        """`inputs` are the topics that the application reads; of `others` only the existence is of interest.

        `stable` are inputs that end where an open transaction begins: under exactly once the sources, since others may
        hold a transaction open. Repartition topics do not belong to them: the application's own markers come a moment
        after its commits, and what waits for them is not caught up with.
        """
        self._admin = admin
        self._group = group
        self._inputs = frozenset(inputs)
        self._others = frozenset(others)
        self._stable = frozenset(stable)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="group-watch", daemon=True)
        self.latest: GroupProgress | None = None
        self.failure: StreamsException | None = None
        """Why the last request failed; None when it did not."""

    def read_progress(self) -> GroupProgress:
        """Ask the brokers now.

        Raises:
            BrokerNotAvailableException: ask again later.
            StreamsException: the brokers refuse to answer.
        """
        found = self._admin.describe_topics(self._inputs | self._others, config=False)
        partitions = [
            TopicPartition(name, number)
            for name, topic in found.items()
            if name in self._inputs
            for number in range(topic.partitions)
        ]
        committed = self._admin.committed_offsets(self._group, partitions)
        stable = [each for each in partitions if each.topic in self._stable]
        ends = self._admin.end_offsets([each for each in partitions if each.topic not in self._stable])
        ends |= self._admin.end_offsets(stable, read_committed=True)
        starts = self._admin.start_offsets([each for each in partitions if each not in committed])
        self.latest = GroupProgress(frozenset(found), committed, starts, ends)
        return self.latest

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the connections. May be called twice, and before `start`.

        It does not wait for a request to brokers that are away, which ends by itself.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        if not self._thread.is_alive():
            self._admin.close()

    def _run(self) -> None:
        while not self._stopping.wait(_INTERVAL):
            try:
                self.read_progress()
            except StreamsException as error:
                self.failure = error
            else:
                self.failure = None
