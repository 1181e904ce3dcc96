"""Tags of instances (KIP-708): how the group tells them, and which instances they let a task's standbys go to; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from streams_runtime.kafka.types import GroupMember
from streams_runtime.tasks.announcements import instance_of
from streams_runtime.topology.plan import TaskId

Tags = Mapping[str, str]
"""Values by their keys, such as {"topology.kubernetes.io/zone": "eu-1a"}."""


def tagged_client_id(instance: str, address: str, number: int, tags: Tags) -> str:
    """The client id of a thread: `NAME|ADDRESS|NUMBER`, and with tags `NAME|ADDRESS|KEY=VALUE,KEY=VALUE|NUMBER`."""
    pairs = ",".join(f"{key}={value}" for key, value in sorted(tags.items()))
    return "|".join([instance, address, *([pairs] if pairs else []), str(number)])


def tags_of(members: Collection[GroupMember], keys: Collection[str]) -> dict[str, dict[str, str]]:
    """The tags of each instance, by what its members' client ids say; of other keys than `keys` none.

    Anybody may write a client id: what is no KEY=VALUE is left out.
    """
    found: dict[str, dict[str, str]] = {instance_of(each): {} for each in members}
    for member in members:
        parts = member.client_id.split("|")
        pairs = (pair.partition("=") for pair in parts[2].split(",")) if len(parts) == _PARTS else ()
        found[instance_of(member)] |= {key: value for key, _, value in pairs if key in keys and value}
    return found


_PARTS = 4  # of a client id with tags


def allowed_by_tags(owner: str, kept: Sequence[str], tags: Mapping[str, Tags], keys: Collection[str]) -> frozenset[str]:
    """The instances that the next standby of a task may go to, after those in `kept`, as their tags differ from those
    of `owner`, which has the task, and of all in `kept`; empty: none, and this and all further ones go anywhere.

    It is the rule of Kafka Streams' ClientTagAwareStandbyTaskAssignor: a standby shares no value of any key with the
    task or with another standby of it. A key that has no more values than there are copies already no longer counts,
    and one that an instance has no value of keeps nobody away from it. `tags` has all instances of the group.
    """
    used: dict[str, set[str]] = {}
    allowed: frozenset[str] = frozenset()
    for count, instance in enumerate([owner, *kept], start=1):
        if count > 1 and instance not in allowed:
            return frozenset()  # tags had been given up before
        for key, value in tags.get(instance, {}).items():
            if key in keys:
                values = {each[key] for each in tags.values() if key in each}
                if len(values) <= count:
                    used.pop(key, None)
                else:
                    used.setdefault(key, set()).add(value)
        there = {owner, *kept[: count - 1]}
        allowed = frozenset(each for each in tags if each not in there and not _is_used(tags[each], used))
    return allowed


def shared_tags(
    owners: Mapping[TaskId, str],
    placed: Mapping[TaskId, Collection[str]],
    tags: Mapping[str, Tags],
    keys: Sequence[str],
) -> dict[str, int]:
    """How many tasks have two copies under one value of a key, by keys; those that have none are left out."""
    shared: dict[str, int] = {}
    for task, kept in placed.items():
        copies = [tags.get(each, {}) for each in (owners.get(task, ""), *kept)]
        for key in keys:
            values = [each[key] for each in copies if key in each]
            if len(values) > len(set(values)):
                shared[key] = shared.get(key, 0) + 1
    return {key: shared[key] for key in keys if key in shared}


def _is_used(tags: Tags, used: Mapping[str, Collection[str]]) -> bool:
    return any(tags.get(key) in values for key, values in used.items())
