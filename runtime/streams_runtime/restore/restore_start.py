"""Where a store begins to read its changelog, and whether what it holds can be gone on from; pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from streams_runtime.kafka.types import TopicPartition


class Offsets(Protocol):
    """Answers where partitions begin and end, and what a group has committed (kafka.admin.kafka_admin.Admin)."""

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]: ...

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def topic_ids(self, names: Collection[str]) -> dict[str, str]: ...


class Topics(Offsets, Protocol):
    """Answers how many partitions topics have, too."""

    def partition_counts(self, names: Collection[str]) -> dict[str, int]: ...


@dataclass(frozen=True, slots=True)
class Log:
    """A changelog partition as the brokers have it: first offset, and the one after the last; and its topic's id.

    `limit` is where restoring ends: the log's end; of a user's topic what its group has committed of it.
    """

    start: int
    end: int
    limit: int
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class Beginning:
    """`offset` is read first. `wipe` says why the store's contents have to go before that; None: they stay.

    `known`: the offset is the store's checkpoint, not the log's beginning.
    """

    offset: int
    known: bool = False
    wipe: str | None = None


def beginning(checkpoint: int | None, log: Log, topic_id: str | None = None) -> Beginning:
    """From where a store with this checkpoint follows the log; None is a store without one.

    `topic_id` is that of the topic in which the checkpoint is an offset; None where that is not known.
    """
    if checkpoint is None:
        return Beginning(log.start)
    if None not in (topic_id, log.topic_id) and topic_id != log.topic_id:
        return Beginning(log.start, wipe=f"its topic was deleted and made anew since the checkpoint {checkpoint}")
    if checkpoint > log.end:
        why = f"it ends at {log.end}, before the checkpoint {checkpoint}: it was truncated or made anew"
        return Beginning(log.start, wipe=why)
    if checkpoint < log.start:
        # The records after the checkpoint are gone from the log; what they deleted would stay for ever.
        return Beginning(log.start, wipe=f"it begins at {log.start}, after the checkpoint {checkpoint}")
    return Beginning(checkpoint, known=True)


def look_at(
    offsets: Offsets, group: str, partitions: Collection[TopicPartition], sources: Collection[TopicPartition]
) -> dict[TopicPartition, Log]:
    """The logs of those `partitions` that the brokers name; `sources` are the users' topics among them.

    A group that has not committed there has processed nothing of it.

    Raises:
        BrokerNotAvailableException: ask again.
    """
    starts, ends = offsets.start_offsets(partitions), offsets.end_offsets(partitions)
    committed = offsets.committed_offsets(group, sources) if sources else {}
    ids = offsets.topic_ids({each.topic for each in partitions})
    return {
        each: Log(
            starts[each],
            end,
            min(committed.get(each, 0), end) if each in sources else end,
            ids.get(each.topic),
        )
        for each, end in ends.items()
        if each in starts
    }


def hold_as_many(topics: Topics, names: Collection[str], records: int) -> bool:
    """Whether a partition of those topics that the brokers have holds so many records, or more.

    Raises:
        BrokerNotAvailableException: ask again.
    """
    counts = topics.partition_counts(names) if names else {}
    partitions = [TopicPartition(name, number) for name, count in counts.items() for number in range(count)]
    if not partitions:
        return False
    starts, ends = topics.start_offsets(partitions), topics.end_offsets(partitions)
    return any(end - starts.get(each, end) >= records for each, end in ends.items())
