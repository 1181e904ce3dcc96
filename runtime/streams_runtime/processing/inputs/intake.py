"""What the next batch reads: records that the member fetched, or, behind a long backlog, ranges for Spark to read."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from streams_runtime.kafka.client.librdkafka_errors import offset_of, partition_of
from streams_runtime.kafka.consumer.group_consumer import Fetched
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.consumer.record_table import record_table
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange
from streams_runtime.processing.inputs.alignment import Alignment, Inputs
from streams_runtime.processing.inputs.batch_size import BatchSize
from streams_runtime.processing.inputs.moment_search import Moments
from streams_runtime.processing.inputs.task_idling import NOTHING, TaskIdling, joined
from streams_runtime.tasks.positions import in_log

BATCH_RECORDS = 500_000
"""Of a batch, at most, unless the user says otherwise."""
# Of 2 M orders of 200,000 keys: half as many updates for stores and topics, and no more memory.
AGGREGATED_RECORDS = 1_000_000
"""The same where no more than partial aggregates of them are held."""
FETCH_RECORDS = 10_000
# Backlog in records from which Spark reads by itself: planning a Kafka scan takes about half a second, in which the
# consumer would hand over this many records.
BACKLOG_RECORDS = 50_000


class Member(Protocol):
    """The group consumer, as the intake uses it."""

    def fetch(self, limit: int, wait: float) -> Fetched: ...

    def poll(self, wait: float = 0) -> None: ...

    def pause(self, partitions: Sequence[TopicPartition]) -> None: ...

    def resume(self, positions: Mapping[TopicPartition, int]) -> None: ...


ReadWhole = Callable[[Mapping[TopicPartition, tuple[int, int]]], pa.Table]
"""Reads ranges of offsets and gives their records (kafka.consumer.range_reader.read_whole)."""
_APART = Inputs()


class Offsets(Moments, Protocol):
    """Answers where partitions begin and end, and where they come to a time (kafka.admin.kafka_admin.Admin)."""

    def start_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]: ...

    def end_offsets(
        self, partitions: Sequence[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]: ...


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """`batch` records at most in a batch; from `backlog` records on Spark reads; `wait` seconds for a first record.

    With `keys` a batch of a backlog has about so many keys at most (processing.inputs.batch_size).
    With `read_committed` a partition ends where the oldest open transaction begins: Spark would wait for its end.
    `idle` seconds at most a task waits for an input that is empty (processing.inputs.task_idling).
    """

    batch: int
    wait: float
    backlog: int = BACKLOG_RECORDS
    fetch: int = FETCH_RECORDS
    keys: int | None = None
    read_committed: bool = False
    idle: float = 0.0


class Intake:
    """Follows the positions of a thread's running tasks. Used by that thread only.

    A batch that was handed out is *claimed*: the next one begins behind it, before it is committed. `restart` gives up
    all claims.
    """

    def __init__(
        self,
        member: Member,
        offsets: Offsets,
        limits: IntakeLimits,
        read: ReadWhole,
        inputs: Inputs = _APART,
        resets: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`read` reads ranges at once; `inputs` are the topics that tasks read together; `resets` are those that do not
        go on at their beginning where what comes next was deleted. `clock` gives seconds.
        """
        self._resets = resets
        self._member = member
        self._offsets = offsets
        self._limits = limits
        self._read = read
        self._alignment = Alignment(offsets, inputs)
        self._idling = TaskIdling(inputs.tasks, limits.idle, offsets, clock)
        self._held = NOTHING  # what the member has fetched and tasks wait with
        self._is_level = False  # whether all that was there has been handed out, and so no input is behind another
        self._committed: dict[TopicPartition, int] = {}
        self._claimed: dict[TopicPartition, int] = {}
        self.size = BatchSize(limits.batch, limits.keys)
        """Of the next batch of a backlog."""
        self._fetching = False  # whether the member fetches; else its partitions are paused

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset after the last committed record, by partition."""
        return dict(self._committed)

    @property
    def backlogged(self) -> bool:
        """Whether Spark reads, because more waits than the member should fetch."""
        return bool(self._committed) and not self._fetching

    def add(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions too; they are paused now."""
        self._hold()
        self._unsettle()
        self._committed |= positions
        self._claimed |= positions

    def remove(self, partitions: frozenset[TopicPartition]) -> None:
        """Read these partitions no longer; the group has taken them or is about to."""
        for partition in partitions:
            self._committed.pop(partition, None)
            self._claimed.pop(partition, None)
        self._idling.remove(partitions)

    def advance(self, offsets: Mapping[TopicPartition, int]) -> None:
        """These offsets are committed."""
        for each, offset in offsets.items():
            if each in self._committed:
                self._committed[each] = offset
                # Claims may have been given up while the commit was under way; what is committed is not read again.
                self._claimed[each] = max(self._claimed[each], offset)

    def restart(self) -> None:
        """Batches that are not committed came to nothing: read them again."""
        self._hold()
        self._unsettle()
        self._claimed = dict(self._committed)

    def next(self) -> BatchInput | None:
        """What to process now; None when nothing came in time. Takes part in the group meanwhile.

        Raises:
            BrokerNotAvailableException: nothing is lost; call again.
            InvalidOffsetException: a log ends before the records that come next, or has deleted those of a topic that
                does not go on at its beginning; ask for positions again.
        """
        if not self._claimed:
            self._member.fetch(1, self._limits.wait)
            return None
        if self._fetching:
            batch = self._fetched()
        else:
            self._member.poll()
            batch = self._from_backlog()
        if batch is not None:
            self._claimed |= {each.partition: each.end for each in batch.ranges}
        return batch

    def _from_backlog(self) -> BatchInput | None:
        """Ranges for Spark; or, when the backlog is short, the member fetches from now on.

        A short backlog of tasks with several inputs is read here before, so that they begin together.
        """
        ends = self._ends()
        starts = self._offsets.start_offsets(list(self._claimed))
        for each, position in self._claimed.items():
            is_deleted = position < starts.get(each, 0)
            if ends.get(each, position) < position or (is_deleted and each.topic in self._resets):
                raise InvalidOffsetException(each)
            self._claimed[each] = in_log(each, position, starts.get(each, 0), ends)
        backlog = {each: ends.get(each, at) - at for each, at in self._claimed.items()}
        short = sum(backlog.values()) < self._limits.backlog
        if short and (self._is_level or not self._alignment.concerns(backlog)):
            self._member.resume(self._claimed)
            self._fetching = True
            return None
        open_ = self._idling.reached(self._claimed, ends)
        ready = {each: open_.get(each, at) - at for each, at in self._claimed.items()}
        shares = self._alignment.shares(self._claimed, open_, shared_out(ready, self.size.limit))
        self._is_level = all(shares.get(each, 0) == waiting for each, waiting in backlog.items())
        cut = {each: (self._claimed[each], self._claimed[each] + share) for each, share in shares.items() if share}
        if not cut:
            self._member.poll(self._idling.at_most(self._limits.wait))
            return None
        # The member would hand over what comes first, of one input more and of another one less.
        records = self._read(cut) if short else None
        return BatchInput(tuple(OffsetRange(each, *cut[each]) for each in sorted(cut)), records)

    def _fetched(self) -> BatchInput | None:
        limit = min(self._limits.fetch, self.size.limit)
        fetched = self._member.fetch(limit, self._idling.at_most(self._limits.wait))
        if not self._fetching:
            return None  # a rebalance in the midst of it gave up the claims: these records do not follow on any more
        if len(fetched.records) >= limit or len(self._held.records) >= self._limits.backlog:
            ends = self._ends()
            backlog = {each: ends.get(each, at) - at for each, at in self._claimed.items()}
            if sum(backlog.values()) >= self._limits.backlog or self._alignment.concerns(backlog):
                # What the member has fetched are many records of one input, and maybe none yet of another.
                self._hold()
                self._unsettle()
                return None
        fetched = joined(self._held, fetched)
        self._see_to_deleted(fetched)
        now, self._held = self._idling.parted(fetched, self._claimed, self.size.limit)
        return batch_of(now, self._claimed)

    def _see_to_deleted(self, fetched: Fetched) -> None:
        """The member reads on at the beginning of a log where what comes next was deleted, and does not say so.

        What tells is that offsets are missing and that the log begins behind them: compaction and transactions leave
        gaps too.
        """
        if not self._resets:
            return
        gaps = [each for each, at in first_offsets(fetched).items() if at > self._claimed.get(each, at)]
        asked = [each for each in gaps if each.topic in self._resets]
        starts = self._offsets.start_offsets(asked) if asked else {}
        for each in asked:
            if starts.get(each, 0) > self._claimed[each]:
                raise InvalidOffsetException(each)

    def _ends(self) -> dict[TopicPartition, int]:
        return self._offsets.end_offsets(list(self._claimed), self._limits.read_committed)

    def _unsettle(self) -> None:
        self._is_level = False
        self._alignment.forget()

    def _hold(self) -> None:
        if self._fetching:
            self._member.pause(list(self._claimed))
            self._fetching = False
            self._held = NOTHING


def shared_out(backlog: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    """How many offsets of each partition a batch of at most `limit` takes: in proportion to what waits there."""
    total = sum(backlog.values())
    if total <= limit:
        return dict(backlog)
    shares = {each: waiting * limit // total for each, waiting in backlog.items()}
    if not any(shares.values()):
        longest = max(backlog, key=lambda each: (backlog[each], each))
        shares[longest] = min(limit, backlog[longest])
    return shares


def first_offsets(fetched: Fetched) -> dict[TopicPartition, int]:
    """The first offset that is known of each partition: that of a record, or the end where there is none."""
    found: dict[TopicPartition, int] = {}
    for message in fetched.records:
        found.setdefault(partition_of(message), offset_of(message))
    return {**fetched.ends, **found}


def batch_of(fetched: Fetched, positions: Mapping[TopicPartition, int]) -> BatchInput | None:
    """Fetched records as a batch; those of partitions that went away are left out.

    A batch may have ranges without a record: then its commit passes a transaction's marker.

    Raises:
        InvalidOffsetException: a log ended before the position, and was read from its beginning.
    """
    kept = []
    ends: dict[TopicPartition, int] = {}
    for message in fetched.records:
        partition = partition_of(message)
        offset = offset_of(message)
        if offset >= ends.get(partition, positions.get(partition, offset + 1)):
            kept.append(message)
            ends[partition] = offset + 1
        elif offset < positions.get(partition, offset):
            raise InvalidOffsetException(partition)
    for partition, end in fetched.ends.items():
        if end < positions.get(partition, end):
            raise InvalidOffsetException(partition)
        if end > ends.get(partition, positions.get(partition, end)):
            ends[partition] = end
    if not ends:
        return None
    ranges = tuple(OffsetRange(each, positions[each], end) for each, end in sorted(ends.items()))
    return BatchInput(ranges, record_table(kept))


def split_by_topics(batch: BatchInput, reads: Callable[[str], bool]) -> BatchInput | None:
    """The part of a batch that comes from topics for which `reads` says so; None when there is none."""
    ranges = tuple(each for each in batch.ranges if reads(each.partition.topic))
    return BatchInput(ranges, batch.records) if ranges else None
