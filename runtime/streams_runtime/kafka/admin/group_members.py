"""Who the live members of a consumer group are, asked in a way that an outage can't end the process by."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import ConsumerGroupState, KafkaError
from confluent_kafka.admin import AdminClient

from streams_runtime.kafka.admin.admin_futures import Answers, listed
from streams_runtime.kafka.client.librdkafka_errors import QuietLog, from_confluent
from streams_runtime.kafka.types import GroupMember, TopicPartition

_UNKNOWN = frozenset({KafkaError.GROUP_ID_NOT_FOUND})
_WITHOUT_MEMBERS = frozenset({ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD})
# Gone since the list was made, not to be seen by this login, or of a kind that this client can't describe.
_NOT_OURS = frozenset({KafkaError.GROUP_ID_NOT_FOUND, KafkaError.GROUP_AUTHORIZATION_FAILED})
# Seconds that librdkafka has for a question beyond those in which it is waited for, more than its client lives on.
_BEYOND = 60.0


def members_of(properties: Mapping[str, str], group: str, timeout: float) -> tuple[GroupMember, ...]:
    """The group's live members with what is assigned to each, by client id; none for an unknown group.

    `timeout` is in seconds. Raises what Admin's methods raise.
    """
    asking = _Asking(properties)
    doing = f"looking up the members of the group {group}"
    answers = Answers(asking, asking.anew, timeout, grace=0.0)
    try:
        question = answers.question(doing, AdminClient.describe_consumer_groups, [group])
        found = answers.all(lambda client, seconds: question(client, seconds + _BEYOND), doing, absent=_UNKNOWN)
    finally:
        asking.close()
    members = (
        GroupMember(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            client_id=member.client_id,
            host=member.host.removeprefix("/"),
            assignment=_partitions(member.assignment),
            target=None if member.target_assignment is None else _partitions(member.target_assignment),
        )
        for answer in found.values()
        for member in answer.members
    )
    return tuple(sorted(members, key=lambda member: (member.client_id, member.member_id)))


def _partitions(assigned: Any) -> tuple[TopicPartition, ...]:
    return tuple(sorted(from_confluent(each) for each in assigned.topic_partitions))


def readers_of(
    properties: Mapping[str, str], topics: Collection[str], but: str, timeout: float
) -> dict[str, tuple[str, ...]]:
    """The groups, other than `but`, that have live members with partitions of these topics, by topic.

    Groups that the login may not see are not among them, nor is who reads without a group. `timeout` is in seconds.
    Raises what Admin's methods raise.
    """
    asking, found = _Asking(properties), dict[str, set[str]]()
    answers = Answers(asking, asking.anew, timeout, grace=0.0)
    doing = f"looking for other readers of {listed(list(topics))}"
    try:
        groups = [each for each in _groups(answers, doing) if each != but]
        if not groups:
            return {}
        question = answers.question(doing, AdminClient.describe_consumer_groups, groups)
        described = answers.all(lambda client, seconds: question(client, seconds + _BEYOND), doing, absent=_NOT_OURS)
    finally:
        asking.close()
    for group, answer in described.items():
        for each in (each for member in answer.members for each in member.assignment.topic_partitions):
            if each.topic in topics:
                found.setdefault(each.topic, set()).add(group)
    return {topic: tuple(sorted(names)) for topic, names in sorted(found.items())}


def _groups(answers: Answers, doing: str) -> list[str]:
    """The groups with members that the login may see."""
    listing = answers.question(doing, AdminClient.list_consumer_groups)

    def ask(client: Any, seconds: float) -> Mapping[str, Any]:
        future: Any = listing(client, seconds)
        return {"groups": future}

    found = answers.all(ask, doing)["groups"]
    return sorted(each.group_id for each in found.valid if each.state not in _WITHOUT_MEMBERS)


class _Asking:
    """A client for each question, which costs some 50 ms. One that was asked during an outage may never get an answer
    again. And it ends the process with a failed assertion when the coordinator is back, if the question's time is over
    by then (librdkafka #5397): so it never is, as long as its client is there.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.address = properties["bootstrap.servers"]
        self._config: dict[str, Any] = {**properties, "error_cb": self._note_error}
        self._client: AdminClient | None = None
        self._error: KafkaError | None = None

    def anew(self) -> AdminClient:
        self._client = AdminClient(self._config, logger=QuietLog())
        return self._client

    def refresh(self) -> None:
        """The next question has a new client anyway."""

    def connection_error(self) -> KafkaError | None:
        if self._client is not None:
            self._client.poll(0)
        return self._error

    def close(self) -> None:
        """Ends the client here and now: its reference to the callback would keep both until a garbage collection."""
        self._client = None

    def _note_error(self, error: KafkaError) -> None:
        # Every broker being down is what the time-out says; the reason before it is the interesting one.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._error = error
