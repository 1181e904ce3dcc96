"""How far a batch reads inputs that have one order, so that none of their records comes before its turn.

A task that reads several topics works them off by the time that each has come to, as in Kafka Streams (KIP-695): a
stream's record meets what the table had by then, however long the backlogs are (batch.record_order). So where not all
of it fits into a batch, all inputs are read up to one moment; those of one moment, where there are too many, tables
first.

So are the inputs of all tasks whose output meets in the tasks behind repartition topics: these know one stream time of
what comes from all of them, and a task that was read further than the others would make the others' records late.

Moments are the times that records have for the brokers. Where a source takes its times from within its records, these
have to go along with them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streams_runtime.kafka.consumer.record_table import LATEST_TIME
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.topology.nodes.regroup_node import RegroupNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode, TableSourceNode
from streams_runtime.topology.plan import SubTopology, Topology

Positions = Mapping[TopicPartition, int]
_ALL_TIMES = 2**41  # ms; no record is from 2039, and if it is, the search goes on
_NO_TIME = LATEST_TIME + 1  # ms; a record that has come so far can't be read, and says nothing of those behind it


class Moments(Protocol):
    """Answers where partitions have come to a time (kafka.admin.kafka_admin.Admin)."""

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]: ...


@dataclass(frozen=True, slots=True)
class Inputs:
    """The topics that are read together: by each task, and by all tasks of sub-topologies whose output meets behind
    repartition topics (`meeting`). Tables among them first.
    """

    together: Sequence[Sequence[str]] = ()
    meeting: Sequence[Sequence[str]] = ()

    def groups(self, partitions: Collection[TopicPartition]) -> list[list[TopicPartition]]:
        """Of these partitions those that are read together, where there are several, in the order of the topics."""
        numbers = sorted({each.partition for each in partitions})
        tasks = [[TopicPartition(topic, number) for topic in topics] for topics in self.together for number in numbers]
        tasks += [[TopicPartition(topic, number) for topic in topics for number in numbers] for topics in self.meeting]
        found = ([each for each in task if each in partitions] for task in tasks)
        return [each for each in found if len(each) > 1]


def inputs_of(topology: Topology) -> Inputs:
    """The topics that are read together in this topology."""
    tables = {node.topic for sub in topology.subtopologies for node in sub.nodes if isinstance(node, TableSourceNode)}

    def in_order(topics: Collection[str]) -> list[str]:
        return sorted(topics, key=lambda topic: (topic not in tables, topic))

    meeting: list[set[str]] = []
    for sub in topology.subtopologies:
        writers = [each for each in topology.subtopologies if _repartition_topics_of(each) & set(sub.source_topics)]
        if writers:
            # Who writes to two that are behind it brings together all that write to either.
            group = {topic for each in writers for topic in each.source_topics}
            group = group.union(*(each for each in meeting if each & group))
            meeting = [*(each for each in meeting if not each & group), group]
    alone = [set(sub.source_topics) for sub in topology.subtopologies if len(sub.source_topics) > 1]
    together = [each for each in alone if not any(each <= group for group in meeting)]
    return Inputs([in_order(each) for each in together], [in_order(each) for each in meeting])


@dataclass(slots=True)
class _Search:
    """For the largest moment below which inputs that are read together have no more records than fit."""

    task: list[TopicPartition]
    starts: Positions
    ends: Positions
    room: int
    low: int
    width: int
    high: int | None = None
    below: dict[TopicPartition, int] = field(init=False)
    above: dict[TopicPartition, int] = field(init=False)

    def __post_init__(self) -> None:
        self.below = {each: self.starts[each] for each in self.task}
        self.above = {each: self.ends[each] for each in self.task}

    @property
    def moment(self) -> int:
        return min(self.low + self.width, _NO_TIME) if self.high is None else (self.low + self.high) // 2

    @property
    def found(self) -> bool:
        close = self.high is not None and self.high - self.low <= 1
        stuck = self.low == _NO_TIME
        return close or stuck or self._count(self.below) > self.room // 2 or self.below == self.above

    def hear(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Where the inputs have come to the moment; None: none of their records is that late."""
        moment, cut = self.moment, {}
        for each in self.task:
            at = offsets.get(each)
            cut[each] = self.ends[each] if at is None else min(max(at, self.starts[each]), self.ends[each])
        if self._count(cut) <= self.room:
            self.low, self.below = moment, cut
            self.width *= 2
        else:
            self.high, self.above = moment, cut

    def cut(self) -> dict[TopicPartition, int]:
        """Where each input is read to: of the moment that is too much by itself, as much as fits."""
        if self._count(self.below):
            return self.below
        left, found = self.room, {}
        for each in self.task:
            taken = min(left, self.above[each] - self.starts[each])
            found[each] = self.starts[each] + taken
            left -= taken
        return found

    def _count(self, cut: Positions) -> int:
        return sum(cut[each] - self.starts[each] for each in self.task)


@dataclass(slots=True)
class Alignment:
    """Remembers where inputs have come to, so that the next search is short."""

    moments: Moments
    inputs: Inputs
    _come_to: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """By the first of inputs that are read together: the moment up to which they were read, and how much further that
    was than before."""

    def concerns(self, backlog: Positions) -> bool:
        """Whether something of several inputs that are read together waits, by how much there is of each."""
        return bool(self.inputs.groups({each for each, waiting in backlog.items() if waiting}))

    def forget(self) -> None:
        """Positions have changed other than by reading on."""
        self._come_to.clear()

    def shares(self, starts: Positions, ends: Positions, shares: Positions) -> dict[TopicPartition, int]:
        """How many offsets of each partition a batch takes, with as many for those read together as `shares` gives.

        Raises BrokerNotAvailableException: nothing is lost.
        """
        found = dict(shares)
        waiting = {each for each, start in starts.items() if start < ends.get(each, start)}
        searches = []
        for task in self.inputs.groups(waiting):
            room = sum(shares.get(each, 0) for each in task)
            if 0 < room < sum(ends[each] - starts[each] for each in task):
                low, width = self._come_to.get(task[0], (0, _ALL_TIMES))
                searches.append(_Search(task, starts, ends, room, low, width))
        while open_ := [each for each in searches if not each.found]:
            offsets = self.moments.offsets_at({at: each.moment for each in open_ for at in each.task})
            for each in open_:
                each.hear(offsets)
        for search in searches:
            self._remember(search)
            found |= {each: end - starts[each] for each, end in search.cut().items()}
        return found

    def _remember(self, search: _Search) -> None:
        if search.low == _NO_TIME:
            self._come_to.pop(search.task[0], None)
            return
        before = self._come_to.get(search.task[0])
        further = (search.high or search.low) - search.low if before is None else search.low - before[0]
        self._come_to[search.task[0]] = (search.low, max(1, further))


def _repartition_topics_of(sub: SubTopology) -> frozenset[str]:
    """Where the sub-topology's streams go on by another key; joins by a foreign key need no order of tasks."""
    return frozenset(node.topic for node in sub.nodes if isinstance(node, RepartitionSinkNode | RegroupNode))
