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

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processing.inputs.moment_search import Moments, MomentSearch, Positions, Remembered, search
from streams_runtime.topology.nodes.regroup_node import RegroupNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode, TableSourceNode
from streams_runtime.topology.plan import SubTopology, Topology


@dataclass(frozen=True, slots=True)
class Inputs:
    """The topics that are read together: by each task, and by all tasks of sub-topologies whose output meets behind
    repartition topics (`meeting`). Tables among them first. `tasks`: what each task reads, where it is several.
    """

    together: Sequence[Sequence[str]] = ()
    meeting: Sequence[Sequence[str]] = ()
    tasks: Sequence[Sequence[str]] = ()

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
    return Inputs(*([in_order(each) for each in some] for some in (together, meeting, alone)))


@dataclass(slots=True)
class _Fitting(MomentSearch):
    """The largest moment below which inputs that are read together have no more records than there is room for."""

    room: int

    def holds(self, cut: Positions) -> bool:
        return self._count(cut) <= self.room

    @property
    def found(self) -> bool:
        return self.exact or self._count(self.below) > self.room // 2 or self.below == self.above

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
    """Shares of a batch that are read up to one moment."""

    moments: Moments
    inputs: Inputs
    _remembered: Remembered = field(default_factory=Remembered)

    def concerns(self, backlog: Positions) -> bool:
        """Whether something of several inputs that are read together waits, by how much there is of each."""
        return bool(self.inputs.groups({each for each, waiting in backlog.items() if waiting}))

    def forget(self) -> None:
        """Positions have changed other than by reading on."""
        self._remembered.forget()

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
                searches.append(_Fitting(task, starts, ends, *self._remembered.of(task[0]), room))
        search(searches, self.moments)
        for made in searches:
            self._remembered.take(made.task[0], made)
            found |= {each: end - starts[each] for each, end in made.cut().items()}
        return found


def _repartition_topics_of(sub: SubTopology) -> frozenset[str]:
    """Where the sub-topology's streams go on by another key; joins by a foreign key need no order of tasks."""
    return frozenset(node.topic for node in sub.nodes if isinstance(node, RepartitionSinkNode | RegroupNode))
