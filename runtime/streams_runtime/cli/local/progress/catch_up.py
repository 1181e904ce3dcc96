"""Whether the backlog of the start is processed: that of the sources, then that of the repartition topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from streams_runtime.cli.local.progress.group_lag import GroupProgress
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.topology.plan import Topology


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Topics still to be caught up with, stage by stage; `targets` are the offsets that the first stage has to reach.

    The sources' targets are their ends at the start. Once they are committed, all that they made in the repartition
    topics of the next sub-topology is written (output is acknowledged before a commit), so those ends are the next
    targets, and so on downstream.
    """

    stages: tuple[tuple[str, ...], ...]
    targets: Mapping[TopicPartition, int] | None = None

    @classmethod
    def of(cls, topology: Topology) -> CatchUp:
        """Everything is still to be done."""
        # In the order in which records pass them: two sub-topologies may feed each other.
        return cls((topology.source_topics, *((topic,) for topic in topology.repartition_topics)))

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return not self.stages

    def advanced(self, progress: GroupProgress) -> CatchUp:
        """What is left, given how far the group is."""
        now = self
        while now.stages:
            if now.targets is None:
                now = replace(now, targets=_ends(now.stages[0], progress))
            if now.targets is None or not _reached(now.targets, progress):
                return now
            now = CatchUp(now.stages[1:])
        return now


def _ends(topics: tuple[str, ...], progress: GroupProgress) -> Mapping[TopicPartition, int] | None:
    """Where the topics end; None while one of them is not there."""
    if not set(topics) <= {each.topic for each in progress.ends}:
        return None
    return {each: end for each, end in progress.ends.items() if each.topic in topics}


def _reached(targets: Mapping[TopicPartition, int], progress: GroupProgress) -> bool:
    return all(progress.position(each) >= end for each, end in targets.items())
