"""Threads of an instance that write large batches to repartition topics keep in step: by the times of what they write.

Each writes its batch in slices, and a slice when no other thread has still to write what is older. What is in work is
waited for, and nothing else: a thread that has no batch, or that is being rebalanced, keeps nobody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from streams_runtime.kafka.producer import BatchProducer, Headers
from streams_runtime.topology.nodes import RepartitionSinkNode
from streams_runtime.topology.plan import SubTopology

_SLICES = 100  # of a batch, at most: each waits until the brokers have the one before
_FEWEST = 1000  # records of a batch that keeps in step: what arrives as it is produced is not held up
_SHORTEST = 1000  # ms between the times of two slices: no grace that is worth a wait is shorter
_PATIENCE = 5.0  # seconds that a batch waits for others in all: less than a transaction may take
_TICK = 0.2  # seconds between two looks at whether to stop
_NOT_BEGUN = -1


class InStep:
    """What a client's threads share: the time up to which each has written what it has in work. For any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reached: dict[str, int] = {}

    def begin(self, thread: str) -> None:
        """The thread has a batch in work; nothing changes where it had one before."""
        with self._changed:
            self._reached.setdefault(thread, _NOT_BEGUN)

    def end(self, thread: str) -> None:
        """The thread has nothing in work, or what it had is given up."""
        with self._changed:
            self._reached.pop(thread, None)
            self._changed.notify_all()

    def is_alone(self, thread: str) -> bool:
        """Whether no other thread has anything in work."""
        with self._changed:
            return not self._reached.keys() - {thread}

    def reach(self, thread: str, moment: int, deadline: float, should_stop: Callable[[], bool]) -> None:
        """All that the thread has in work and is older than `moment` (ms) is written: wait until that is so of all.

        Returns at the `deadline` (time.monotonic()) and when told to stop, too. Who is furthest behind never waits.
        """
        with self._changed:
            if thread in self._reached:
                self._reached[thread] = max(moment, self._reached[thread])
            self._changed.notify_all()
            while any(at < moment for each, at in self._reached.items() if each != thread):
                left = deadline - time.monotonic()
                if left <= 0 or should_stop():
                    return
                self._changed.wait(min(left, _TICK))


@dataclass(frozen=True, slots=True)
class Pace:
    """One thread's side of it."""

    in_step: InStep
    thread: str
    should_stop: Callable[[], bool]

    def begin(self, subs: Sequence[SubTopology], records: int) -> None:
        """A batch of these sub-topologies is in work, of so many records."""
        if records >= _FEWEST and any(repartition_topics_of(sub) for sub in subs):
            self.in_step.begin(self.thread)

    def end(self) -> None:
        """Nothing is in work."""
        self.in_step.end(self.thread)

    def paced(self, producer: BatchProducer, sub: SubTopology) -> BatchProducer | PacedProducer:
        """What a batch of the sub-topology is written by."""
        topics = repartition_topics_of(sub)
        alone = not topics or self.in_step.is_alone(self.thread)
        return producer if alone else PacedProducer(producer, topics, self)


@dataclass(slots=True)
class PacedProducer:
    """Sends a batch as its producer does, and what goes to repartition topics in step with other threads."""

    producer: BatchProducer
    topics: frozenset[str]
    pace: Pace
    _deadline: float = field(default_factory=lambda: time.monotonic() + _PATIENCE)

    def send(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        partition: int | None = None,
        headers: Sequence[Headers | None] | None = None,
        placed_by: Sequence[bytes | None] | None = None,
    ) -> None:
        """As BatchProducer.send. Raises what that and BatchProducer.flush raise."""
        if topic not in self.topics or not timestamps:
            self.producer.send(topic, keys, values, timestamps, partition, headers, placed_by)
            return
        for moment, part in slices(timestamps):
            self.pace.in_step.reach(self.pace.thread, moment, self._deadline, self.pace.should_stop)
            self.producer.send(
                topic,
                keys[part],
                values[part],
                timestamps[part],
                partition,
                headers and headers[part],
                placed_by and placed_by[part],
            )
            self.producer.flush()


def slices(timestamps: Sequence[int]) -> Iterator[tuple[int, slice]]:
    """Parts of records by the stream time that they have come to, each with that of its first one."""
    come = np.maximum.accumulate(np.asarray(timestamps, np.int64))
    width = max(_SHORTEST, -(-int(come[-1] - come[0] + 1) // _SLICES))
    firsts = np.flatnonzero(np.diff((come - come[0]) // width, prepend=-1)).tolist()
    for first, end in zip(firsts, [*firsts[1:], len(come)], strict=True):
        yield int(come[first]), slice(first, end)


def repartition_topics_of(sub: SubTopology) -> frozenset[str]:
    """Where the sub-topology's streams go on by another key; joins by a foreign key need no order of tasks."""
    return frozenset(node.topic for node in sub.nodes if isinstance(node, RepartitionSinkNode))
