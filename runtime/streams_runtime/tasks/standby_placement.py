"""Which instance keeps which standby: the group gives partitions only, so every instance works it out; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b

from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.tasks.announcements import instance_of
from streams_runtime.tasks.assignment import inputs_of_task
from streams_runtime.topology.plan import TaskId, Topology


def stateful_tasks(topology: Topology, counts: Mapping[str, int]) -> dict[TaskId, frozenset[TopicPartition]]:
    """All tasks that have stores, on whichever instance, with their inputs; `counts` are the topics' partitions."""
    return {
        TaskId(sub.id, number): inputs_of_task(sub, number, counts)
        for sub in topology.subtopologies
        if sub.stores and counts.keys() >= set(sub.source_topics)
        for number in range(max(counts[topic] for topic in sub.source_topics))
    }


def owners_of(members: Collection[GroupMember], tasks: Mapping[TaskId, frozenset[TopicPartition]]) -> dict[TaskId, str]:
    """The instance that has each task, or gets it: some of its inputs are there, or will be when a rebalance ends."""
    holders = {each: instance_of(member) for member in members for each in member.assignment}
    held = {
        task: holders[each]
        for task, inputs in tasks.items()
        for each in sorted(inputs, reverse=True)
        if each in holders
    }
    return range_assigned(members, tasks) | held


def place_standbys(
    members: Collection[GroupMember], tasks: Mapping[TaskId, frozenset[TopicPartition]], replicas: int
) -> dict[TaskId, tuple[str, ...]]:
    """The instances that keep a standby of each task, at most `replicas`: every instance works out the same.

    Never the instance that has the task. The first replica is where the group would put the task if its owner left,
    as its range assignor has no say in which stores are warm: there it is promoted and has nothing to restore. The
    others go to those that have the fewest, and among these by a hash of task and instance, so that a member that
    comes or goes moves few of them.
    """
    if not replicas:
        return dict.fromkeys(tasks, ())
    instances = sorted({instance_of(member) for member in members})
    owners = owners_of(members, tasks)
    heirs = {gone: range_assigned([each for each in members if instance_of(each) != gone], tasks) for gone in instances}
    placed: dict[TaskId, list[str]] = {}
    held: Counter[str] = Counter()
    for task in tasks:
        heir = heirs[owners[task]].get(task) if task in owners else None
        placed[task] = [heir] if heir is not None else []
        held.update(placed[task])
    for nth in range(1, replicas):
        for task in tasks:
            free = [each for each in instances if each != owners[task] and each not in placed[task]]
            if len(placed[task]) == nth and free:
                chosen = min(free, key=lambda each, task=task: (held[each], _weight(task, each)))  # type: ignore[misc]
                placed[task].append(chosen)
                held[chosen] += 1
    return {task: tuple(kept) for task, kept in placed.items()}


def range_assigned(members: Collection[GroupMember], tasks: Iterable[TaskId]) -> dict[TaskId, str]:
    """Whom a range assignor gives each task: members in order, static ones first, each a range of the partitions."""
    in_order = sorted(members, key=lambda each: (each.instance_id is None, each.instance_id or each.member_id))
    if not in_order:
        return {}
    by_sub: dict[int, list[TaskId]] = {}
    for task in sorted(tasks):
        by_sub.setdefault(task.subtopology, []).append(task)
    return {task: member for of_sub in by_sub.values() for task, member in _ranges(of_sub, in_order)}


def _ranges(tasks: Sequence[TaskId], members: Sequence[GroupMember]) -> Iterable[tuple[TaskId, str]]:
    quota, extra = divmod(len(tasks), len(members))
    start = 0
    for number, member in enumerate(members):
        end = start + quota + (number < extra)
        for task in tasks[start:end]:
            yield task, instance_of(member)
        start = end


def _weight(task: TaskId, instance: str) -> bytes:
    return blake2b(f"{task} {instance}".encode(), digest_size=8).digest()
