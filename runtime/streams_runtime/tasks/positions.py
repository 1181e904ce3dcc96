"""Where inputs are read from: where the group is, if their logs have it, and else where their sources begin."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from streams_runtime.api.reading.topic_patterns import fits
from streams_runtime.api.spec.spec_values import OffsetReset, format_offset_reset
from streams_runtime.errors import BrokerNotAvailableException, StreamsException
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.types import TopicPartition

_LOGGER = logging.getLogger("streams_runtime.tasks")
_MS = timedelta(milliseconds=1)


class CommittedOffsets(Protocol):
    """Answers where a group is, and where partitions begin and end (kafka.admin.kafka_admin.Admin)."""

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]: ...

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]: ...

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def topic_ids(self, names: Collection[str]) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Where topics begin in which a group has no valid offset.

    `resets`: by topic, or by the one of `patterns` that topics fit; what is left out begins at its beginning.
    `read_committed`: the end is where the oldest open transaction begins, whose records are still to come. `clock`: the
    time from which durations count back, in seconds since 1970.
    """

    resets: Mapping[str, OffsetReset] = field(default_factory=dict)
    read_committed: bool = False
    clock: Callable[[], float] = time.time
    patterns: Collection[str] = ()

    def reset_of(self, topic: str) -> OffsetReset | None:
        """Where the topic begins; None: at its beginning."""
        if topic in self.resets:
            return self.resets[topic]
        return next((self.resets[each] for each in self.patterns if each in self.resets and fits(each, topic)), None)


@dataclass(frozen=True, slots=True)
class Positions:
    """`next`: the offset that comes next, by partition. `begun`: those that were chosen by the time of the choice.

    These have to be committed before the group can change: whoever chose again later would pass over the records that
    have come in between.
    """

    next: Mapping[TopicPartition, int]
    begun: Mapping[TopicPartition, int]


def positions_of(
    offsets: CommittedOffsets, group: str, partitions: Collection[TopicPartition], beginnings: Beginnings
) -> Positions:
    """Where the group is. Where it has committed nothing, or its log does not have that offset: where the topic begins
    by its offsetReset, as in Kafka Streams.

    Raises:
        BrokerNotAvailableException: call again.
        StreamsException: there is no valid offset, and the topic's offsetReset is `none`.
    """
    if not partitions:
        return Positions({}, {})
    # Commits first: the ends of a moment before might lie before what was committed since.
    committed = offsets.committed_offsets(group, partitions)
    starts, ends = offsets.start_offsets(partitions), offsets.end_offsets(partitions)
    chosen = {topic: beginnings.reset_of(topic) for topic in {each.topic for each in partitions}}
    begins = {
        each: reset
        for each in partitions
        if (reset := chosen[each.topic]) is not None and not _is_valid(each, committed, starts, ends)
    }
    begun = _begun(offsets, begins, starts, beginnings)
    for each, at in begun.items():
        _tell(each, committed.get(each), at, begins[each])
    kept = {
        each: in_log(each, committed.get(each, starts.get(each, 0)), starts.get(each, 0), ends)
        for each in partitions
        if each not in begun
    }
    return Positions({**kept, **begun}, begun)


def first_offset(reset: OffsetReset, start: int, end: int, at_time: int | None) -> int:
    """The offset that comes first by `reset` in a log from `start` to `end`, which has `at_time` as the first one of
    the time that `reset` means, if any. `none` has no first one.

    That of a time may lie behind the end, in a transaction or behind one that is open: it is not to be read yet.
    """
    if reset == "earliest":
        return start
    if reset == "latest" or at_time is None:
        return end
    return min(max(start, at_time), end)


def time_of(reset: timedelta, now: int) -> int:
    """The time (ms since 1970) that lies `reset` before `now`; 1970 where it would be earlier."""
    return max(0, now - reset // _MS)


def _is_valid(
    partition: TopicPartition,
    committed: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> bool:
    position = committed.get(partition)
    return position is not None and starts.get(partition, 0) <= position <= ends.get(partition, position)


def _begun(
    offsets: CommittedOffsets,
    begins: Mapping[TopicPartition, OffsetReset],
    starts: Mapping[TopicPartition, int],
    beginnings: Beginnings,
) -> dict[TopicPartition, int]:
    if not begins:
        return {}
    if lost := sorted(each for each, reset in begins.items() if reset == "none"):
        raise StreamsException(
            f"No valid committed offset found for input [{','.join(dict.fromkeys(each.topic for each in lost))}] and no"
            f" valid reset policy configured, for {', '.join(map(str, lost))}: offsetReset is none. Set the group's"
            " offsets (streamsapp reset FILE --to …), or let the source begin at earliest, latest or a duration"
        ) from InvalidOffsetException(lost[0])
    now = int(beginnings.clock() * 1000)
    times = {each: time_of(reset, now) for each, reset in begins.items() if isinstance(reset, timedelta)}
    at = offsets.offsets_at(times) if times else {}
    ends = offsets.end_offsets(list(begins), beginnings.read_committed)
    if unseen := sorted(str(each) for each in begins if each not in ends or each not in starts):
        raise BrokerNotAvailableException(f"the brokers do not say yet where {', '.join(unseen)} begin and end")
    return {each: first_offset(reset, starts[each], ends[each], at.get(each)) for each, reset in begins.items()}


def _tell(partition: TopicPartition, committed: int | None, at: int, reset: OffsetReset) -> None:
    shown = format_offset_reset(reset)
    if committed is None:
        _LOGGER.info("%s has no committed offset: it begins at offset %d (offsetReset %s)", partition, at, shown)
    else:
        _LOGGER.warning(
            "%s does not have offset %d, which the group has committed: records were deleted, its log was truncated, or"
            " the topic made anew. It is read from offset %d on (offsetReset %s)",
            partition,
            committed,
            at,
            shown,
        )


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
