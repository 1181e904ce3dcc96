"""A reset at the brokers: looking, emptying the internal topics, setting the group's offsets. All may be repeated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.errors import BrokerNotAvailableException, IllegalStateException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.topics.reset.reset_plan import (
    OffsetMove,
    PartitionLog,
    ResetSurvey,
    TopicLog,
    listed,
    reset_topics_of,
)
from streams_runtime.topics.table_changelogs import former_changelogs
from streams_runtime.topics.topic_manager import topology_on
from streams_runtime.topology.partition_counts import internal_topic_names
from streams_runtime.topology.plan import Topology

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def survey(
    admin: Admin, reset: ResetSpec, topology: Topology, exactly_once: bool, problems: Sequence[str]
) -> ResetSurvey:
    """What a reset is decided on. Changes nothing; raises what Admin's methods raise.

    `problems` are given on. Under `exactly_once` a log ends where its oldest open transaction begins.
    """
    topology = topology_on(admin, topology)
    group = topology.application_id
    internal = (*internal_topic_names(topology), *former_changelogs(admin, topology))
    emptied = reset.internal_topics == "Delete"
    there = set(admin.describe_topics(internal, config=False)) if emptied else set()
    return ResetSurvey(
        logs=_logs(admin, reset, group, {topic for _, topic in reset_topics_of(reset, topology)}, exactly_once),
        internal=tuple(name for name in internal if name in there),
        members=members(admin, group),
        readers=admin.readers_of(there, group),
        undeletable=admin.undeletable(there),
        problems=tuple(problems),
    )


def members(admin: Admin, group: str) -> tuple[str, ...]:
    """The group's live members, as people know them: instance and host."""
    return tuple(f"{each.instance_id or each.client_id} at {each.host}" for each in admin.group_members(group))


def require_no_members(admin: Admin, group: str) -> None:
    """Raises IllegalStateException while the group has members: whatever they do would tear the reset."""
    if found := members(admin, group):
        raise IllegalStateException(has_members(group, found))


def has_members(group: str, found: Collection[str]) -> str:
    """That a group has members, and what to do."""
    return (
        f"the group {group} has members: {listed(found)}. Stop them; one that was killed goes by itself when its"
        " session has ended, after 45 s as brokers are by default"
    )


def set_offsets(admin: Admin, group: str, moves: Sequence[OffsetMove]) -> None:
    """Commit what comes next, in one request, as offsets of the topics that were looked at.

    A topic that was made anew meanwhile has another id: the application reads it from its beginning, with a warning.
    Raises IllegalStateException: the group has members.
    """
    offsets = {TopicPartition(move.topic, number): offset for move in moves for number, offset in move.after}
    admin.move_offsets(group, offsets, {move.topic: move.topic_id for move in moves})


def _logs(
    admin: Admin, reset: ResetSpec, group: str, topics: Collection[str], exactly_once: bool
) -> Mapping[str, TopicLog]:
    found = admin.describe_topics(topics, config=False)
    partitions = [TopicPartition(name, number) for name, it in found.items() for number in range(it.partitions)]
    starts, ends = admin.start_offsets(partitions), admin.end_offsets(partitions, read_committed=exactly_once)
    committed, time = admin.committed_offsets(group, partitions), reset.to.time
    at: Mapping[TopicPartition, int | None] = {}
    if time is not None:
        at = admin.offsets_at(dict.fromkeys(partitions, -((_EPOCH - time) // _MS)))

    if unseen := [str(each) for each in partitions if each not in starts or each not in ends]:
        raise BrokerNotAvailableException(
            f"the brokers at {admin.address} do not say where {listed(unseen)} begin and end, though they have them."
            " Try again"
        )

    def log(each: TopicPartition) -> PartitionLog:
        end = ends[each]
        found_at = at.get(each)
        return PartitionLog(starts[each], end, committed.get(each), end if found_at is None else min(found_at, end))

    return {
        name: TopicLog(
            it.id,
            {each.partition: log(each) for each in partitions if each.topic == name},
        )
        for name, it in found.items()
    }
