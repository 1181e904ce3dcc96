"""Which instance keeps which standby: the group gives partitions only, so every instance works it out; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.tasks.announcements import instance_of
from streams_runtime.tasks.assignment import inputs_of_task
from streams_runtime.tasks.client_tags import allowed_by_tags, tags_of
from streams_runtime.topology.plan import TaskId, Topology


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many standbys each task is to have, and the keys of the tags by which its copies are to differ."""

    replicas: int
    tag_keys: Sequence[str] = ()


def stateful_tasks(topology: Topology, counts: Mapping[str, int]) -> dict[TaskId, frozenset[TopicPartition]]:
    """All tasks that have stores, on whichever instance, with their inputs; `counts` are the topics' partitions."""
    return {
        TaskId(sub.id, number): inputs_of_task(sub, number, counts)
        for sub in topology.resolved(counts).subtopologies
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
    members: Collection[GroupMember],
    tasks: Mapping[TaskId, frozenset[TopicPartition]],
    replicas: int,
    keys: Collection[str] = (),
) -> dict[TaskId, tuple[str, ...]]:
    """The instances that keep a standby of each task, at most `replicas`: every instance works out the same.

    Never the instance that has the task, and where that can be never one whose tags of `keys` agree with those of
    another copy (client_tags.allowed_by_tags). The first replica is where the group would put the task if all left
    to which it may not go, the owner alone without tags, as its range assignor has no say in which stores are warm:
    there it is promoted and has nothing to restore. Another one is where the group would put the task if its owner
    alone left. The others go to those that have the fewest, and among these by a hash of task and instance, so that
    a member that comes or goes moves few of them.
    """
    if not replicas:
        return dict.fromkeys(tasks, ())
    owners, heirs = owners_of(members, tasks), _Heirs(members, tasks)
    tags = tags_of(members, keys)
    placed: dict[TaskId, list[str]] = {task: [] for task in tasks}
    held: Counter[str] = Counter()
    for nth in range(replicas):
        for task in tasks:
            free = tags.keys() - {owners.get(task), *placed[task]}
            if task not in owners or not free:
                continue
            among = allowed_by_tags(owners[task], placed[task], tags, keys) or frozenset(free)
            heir = heirs.of(task, among if nth == 0 else tags.keys() - {owners[task]})
            chosen = heir if heir in among else min(among, key=lambda each: (held[each], _weight(task, each)))
            placed[task].append(chosen)
            held[chosen] += 1
    return {task: tuple(kept) for task, kept in placed.items()}


class _Heirs:
    """Whom the group would give a task if only some instances were left."""

    def __init__(self, members: Collection[GroupMember], tasks: Iterable[TaskId]) -> None:
        self._members = members
        self._tasks = tasks
        self._found: dict[frozenset[str], dict[TaskId, str]] = {}

    def of(self, task: TaskId, left: Collection[str]) -> str | None:
        """The instance among those that are `left`; None without any."""
        names = frozenset(left)
        if names not in self._found:
            there = [each for each in self._members if instance_of(each) in names]
            self._found[names] = range_assigned(there, self._tasks)
        return self._found[names].get(task)


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
