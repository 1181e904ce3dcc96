"""Instances that have announced themselves to the group: how that shows, and the group as it is once they join; pure.

An instance that warms up is a member of its group that subscribes to no topic and gets no partition. Its client id says
so, and with how many stream threads it will take part: `NAME|ADDRESS|+THREADS`, where a thread's own client id is
`NAME|ADDRESS|NUMBER`.
"""

from __future__ import annotations

from collections.abc import Collection

from streams_runtime.kafka.types import GroupMember

_MOST_THREADS = 1000  # as spec.processing.streamThreads allows; anybody may write a client id


def instance_of(member: GroupMember) -> str:
    """The instance that a member belongs to, which is the first part of its client id."""
    return member.client_id.partition("|")[0]


def announcing_client_id(instance: str, address: str, threads: int) -> str:
    """The client id by which an instance announces that it will take part with so many threads."""
    return f"{instance}|{address}|+{threads}"


def announced_threads(member: GroupMember) -> int:
    """The threads that a member announces; 0: it takes part, or says nothing that is understood here."""
    last = member.client_id.rpartition("|")[2]
    number = last.removeprefix("+")
    if last == number or not (number.isascii() and number.isdecimal()):
        return 0
    return min(int(number[:9]), _MOST_THREADS)


def taking_part(members: Collection[GroupMember]) -> list[GroupMember]:
    """The members that get partitions: all but announcements."""
    return [each for each in members if not announced_threads(each)]


def announced(members: Collection[GroupMember]) -> frozenset[str]:
    """The instances that are announced, and no members with all of their threads yet."""
    there = {each.instance_id for each in taking_part(members)}
    return frozenset(instance_of(each) for each in members if _thread_names(each) - there)


def when_joined(members: Collection[GroupMember]) -> list[GroupMember]:
    """The group as it is when all that are announced have joined, each under its threads' static names."""
    there = taking_part(members)
    names = {each.instance_id for each in there}
    coming = {
        name: GroupMember(name, name, f"{instance_of(each)}|{name}", each.host, ())
        for each in members
        for name in sorted(_thread_names(each) - names)
    }
    return [*there, *coming.values()]


def _thread_names(member: GroupMember) -> set[str]:
    return {f"{instance_of(member)}-{number}" for number in range(1, announced_threads(member) + 1)}
