"""Where inputs are read from: where the group is, if their logs have it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Protocol

from streams_runtime.kafka.types import TopicPartition

_LOGGER = logging.getLogger("streams_runtime.tasks")


class CommittedOffsets(Protocol):
    """Answers where a group is, and where partitions begin and end (kafka.admin.kafka_admin.Admin)."""

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def topic_ids(self, names: Collection[str]) -> dict[str, str]: ...


def positions_of(
    offsets: CommittedOffsets, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Where the group is; where a partition begins, if the group has never committed there, or its log does not have
    that offset (Kafka's auto.offset.reset: earliest).

    Raises:
        BrokerNotAvailableException: call again.
    """
    if not partitions:
        return {}
    starts, ends = offsets.start_offsets(partitions), offsets.end_offsets(partitions)
    committed = offsets.committed_offsets(group, partitions)
    return {
        each: in_log(each, committed.get(each, starts.get(each, 0)), starts.get(each, 0), ends) for each in partitions
    }


def in_log(partition: TopicPartition, position: int, start: int, ends: Mapping[TopicPartition, int]) -> int:
    """`position` if a log that begins at `start` has it; else `start`, with a warning. Without an end it is not known
    where it ends.
    """
    end = ends.get(partition, position)
    if start <= position <= end:
        return position
    if position < start:
        _LOGGER.warning(
            "%s begins at offset %d: the records from %d on were deleted before they were processed. Raise the topic's"
            " retention",
            partition,
            start,
            position,
        )
    else:
        _LOGGER.warning(
            "%s ends at offset %d, before %d, which the group has committed: its log was truncated, or the topic made"
            " anew. It is read from its beginning, offset %d",
            partition,
            end,
            position,
            start,
        )
    return start
