"""From assigned partitions to tasks; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.topology.plan import SubTopology, TaskId, Topology


def inputs_of_task(sub: SubTopology, partition: int, counts: Mapping[str, int]) -> frozenset[TopicPartition]:
    """The partitions that the task (sub, partition) reads; `counts` are the topics' partition counts."""
    topics = sub.resolved(counts).source_topics
    return frozenset(TopicPartition(topic, partition) for topic in topics if partition < counts[topic])


def complete_tasks(
    topology: Topology, assigned: Collection[TopicPartition], counts: Mapping[str, int]
) -> dict[TaskId, frozenset[TopicPartition]]:
    """The tasks whose inputs are all assigned, with their inputs.

    An assignment may arrive topic by topic, so a task with some of its inputs is not there yet.
    """
    found = {}
    for sub in topology.subtopologies:
        for partition in sorted({each.partition for each in assigned if sub.reads(each.topic)}):
            inputs = inputs_of_task(sub, partition, counts)
            if inputs <= set(assigned):
                found[TaskId(sub.id, partition)] = inputs
    return found
