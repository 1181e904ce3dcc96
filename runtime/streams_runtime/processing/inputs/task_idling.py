"""How long a task waits for an input that has nothing, before it goes on with what the others have (KIP-695).

As in Kafka Streams (PartitionGroup#readyToProcess): while each input of a task has a record, the task processes by
time. Once one is empty, it waits for that input for `max.task.idle.ms`, from when it was found empty on; then it goes
on without it until something comes there. Kafka Streams looks for the next empty input only when the time of the one
before is over; here all of them have their time at once. Inputs that lag behind are no matter of waiting: what the
brokers have is read up to one moment in any case (processing.inputs.alignment).

How far an input has come is the largest time of its records so far: what the others have from later on waits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from streams_runtime.kafka.client.librdkafka_errors import offset_of, partition_of, time_of
from streams_runtime.kafka.consumer.group_consumer import Fetched
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processing.inputs.alignment import Inputs
from streams_runtime.processing.inputs.moment_search import (
    NO_TIME,
    Moments,
    MomentSearch,
    Positions,
    Remembered,
    search,
)

NOTHING = Fetched([], {})
"""No records."""
_NOT_YET = -1  # ms; a moment that no record comes before


@dataclass(slots=True)
class _Reached(MomentSearch):
    """The largest moment that all of these inputs come to with what there is of them."""

    def holds(self, cut: Positions) -> bool:
        return all(cut[each] < self.ends[each] for each in self.task)


class TaskIdling:
    """What goes on now of the inputs of a thread's tasks, and what waits. Used by that thread only."""

    def __init__(
        self,
        tasks: Sequence[Sequence[str]],
        most: float,
        moments: Moments,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tasks` are the topics of those that read several; `most` is the longest wait for an empty one in seconds,
        with 0 nothing waits.
        """
        self._tasks = Inputs(tasks)
        self._most = most
        self._moments = moments
        self._clock = clock
        # Until when an empty input is waited for; passed or not, it stays until something comes there.
        self._deadlines: dict[TopicPartition, float] = {}
        self._remembered = Remembered()
        self._left = math.inf  # seconds until something that waits may go on

    @property
    def active(self) -> bool:
        """Whether anything may wait."""
        return self._most > 0 and bool(self._tasks.together)

    def at_most(self, wait: float) -> float:
        """`wait`, or the seconds after which something may go on that waits now."""
        return min(wait, self._left)

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """These are read no longer."""
        for each in partitions:
            self._deadlines.pop(each, None)

    def parted(self, fetched: Fetched, partitions: Collection[TopicPartition], limit: int) -> tuple[Fetched, Fetched]:
        """Of what was fetched of these partitions what goes on now, `limit` records at most, and what waits."""
        if not self.active:
            return fetched, NOTHING
        come_to: dict[TopicPartition, int] = {}
        times = []
        for each in fetched.records:
            partition = partition_of(each)
            come_to[partition] = max(time_of(each), come_to.get(partition, 0))
            times.append(come_to[partition])
        bounds = self._bounds(come_to, partitions)
        ready = [
            row
            for row, (each, moment) in enumerate(zip(fetched.records, times, strict=True))
            if moment <= bounds.get(partition_of(each), NO_TIME)
        ]
        if len(ready) > limit:
            ready = sorted(ready, key=times.__getitem__)[:limit]
            self._left = 0.0
        going = set(ready)
        now = [each for row, each in enumerate(fetched.records) if row in going]
        later = [each for row, each in enumerate(fetched.records) if row not in going]
        held = {partition_of(each): offset_of(each) for each in later}
        ends = {each: end for each, end in fetched.ends.items() if each not in held}
        # One that more has come behind is none any more.
        ends_later = {each: end for each, end in fetched.ends.items() if end > held.get(each, end)}
        return Fetched(now, ends), Fetched(later, ends_later)

    def reached(self, positions: Positions, ends: Positions) -> Positions:
        """How far of `ends` tasks go on now that are at these positions.

        Raises BrokerNotAvailableException: nothing is lost.
        """
        if not self.active:
            return ends
        found, now, waits = dict(ends), self._clock(), [math.inf]
        searches = []
        for task in self._tasks.groups(positions):
            there = [each for each in task if ends.get(each, 0) > positions[each]]
            left = self._seconds_left(task, there, now)
            if there and left > 0:
                waits.append(left)
                found |= {each: positions[each] for each in there}
            elif len(there) > 1:
                searches.append(_Reached(there, positions, ends, *self._remembered.of(tuple(there))))
        search(searches, self._moments)
        for made in searches:
            self._remembered.take(tuple(made.task), made)
            found |= made.above
        self._left = min(waits)
        return found

    def _bounds(
        self, come_to: dict[TopicPartition, int], partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Up to which moment (ms) the inputs of tasks go on, of which those that are there have come so far."""
        found: dict[TopicPartition, int] = {}
        now, waits = self._clock(), [math.inf]
        for task in self._tasks.groups(partitions):
            there = [each for each in task if each in come_to]
            left = self._seconds_left(task, there, now)
            bound = min((come_to[each] for each in there), default=NO_TIME) if left <= 0 else _NOT_YET
            found |= dict.fromkeys(task, bound)
            behind = [each for each in there if come_to[each] > bound]
            if left <= 0:
                # What has gone on leaves inputs empty.
                left = self._seconds_left(task, behind, now)
            if behind:
                waits.append(left)
        self._left = min(waits)
        return found

    def _seconds_left(self, task: Sequence[TopicPartition], there: Collection[TopicPartition], now: float) -> float:
        """How long a task waits that has something of these inputs."""
        left = 0.0
        for each in task:
            if each in there:
                self._deadlines.pop(each, None)
            else:
                left = max(left, self._deadlines.setdefault(each, now + self._most) - now)
        return left


def joined(first: Fetched, then: Fetched) -> Fetched:
    """What was fetched first, and behind it what was fetched then."""
    return Fetched([*first.records, *then.records], {**first.ends, **then.ends}) if first is not NOTHING else then
