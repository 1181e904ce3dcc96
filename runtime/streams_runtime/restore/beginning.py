"""Where a store begins to read its changelog, and whether what it holds can be gone on from; pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from streams_runtime.kafka.types import TopicPartition


class Offsets(Protocol):
    """Answers where partitions begin and end, and what a group has committed (kafka.admin.Admin)."""

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]: ...

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...


@dataclass(frozen=True, slots=True)
class Log:
    """A changelog partition as the brokers have it: first offset, and the one after the last.

    `limit` is where restoring ends: the log's end; of a user's topic what its group has committed of it.
    """

    start: int
    end: int
    limit: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """`offset` is read first. `wipe` says why the store's contents have to go before that; None: they stay.

    `known`: the offset is the store's checkpoint, not the log's beginning.
    """

    offset: int
    known: bool = False
    wipe: str | None = None


def beginning(checkpoint: int | None, log: Log) -> Beginning:
    """From where a store with this checkpoint follows the log; None is a store without one."""
    if checkpoint is None:
        return Beginning(log.start)
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
    """The logs of those `partitions` that are there; `sources` are the users' topics among them.

    A group that has not committed there has processed nothing of it.

    Raises:
        BrokerNotAvailableException: ask again.
    """
    starts, ends = offsets.start_offsets(partitions), offsets.end_offsets(partitions)
    committed = offsets.committed_offsets(group, sources) if sources else {}
    return {
        each: Log(starts.get(each, 0), end, min(committed.get(each, 0), end) if each in sources else end)
        for each, end in ends.items()
    }
