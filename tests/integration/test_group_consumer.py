"""Membership in a real group: who gets which partitions, what comes back after a restart, and where reading goes on."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from clients import delete_records
from confluent_kafka import Producer

from streams_runtime.errors import UnreleasedInstanceIdException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition, TopicSpec

pytestmark = pytest.mark.integration

PATIENCE = 30.0
SESSION = 6.0  # seconds that the embedded broker waits for a member that says nothing


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    found = Admin(client_properties(broker.bootstrap_servers, {}))
    yield found
    found.close()


class Member:
    """A member that notes its callbacks, and what it has by them."""

    def __init__(self, address: str, group: str, name: str, topics: set[str], **config: str | int) -> None:
        self.calls: list[tuple[str, frozenset[TopicPartition]]] = []
        self.has: frozenset[TopicPartition] = frozenset()
        membership = Membership(group, name, f"{name}|127.0.0.1:1|1")
        self.consumer = GroupConsumer(client_properties(address, config), membership, self._assigned, self._revoked)
        self.consumer.subscribe(topics)
        self.closed = False

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.consumer.close()

    def _assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append(("assigned", partitions))
        self.has |= partitions

    def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append(("revoked", partitions))
        self.has -= partitions


Join = Callable[..., Member]


@pytest.fixture
def join(admin: Admin, namespace: str) -> Iterator[Join]:
    """Makes members of the test's group for the topics that it names (without the test's prefix)."""
    members: list[Member] = []

    def make(name: str, *topics: str, **config: str | int) -> Member:
        members.append(Member(admin.address, namespace, name, {f"{namespace}-{each}" for each in topics}, **config))
        return members[-1]

    yield make
    for member in members:
        member.close()


def make_topics(admin: Admin, namespace: str, **partitions: int) -> None:
    admin.create_topics([TopicSpec(f"{namespace}-{name}", count) for name, count in partitions.items()])


def fill(admin: Admin, topic: str, partitions: int, records: int) -> None:
    producer = BatchProducer(client_properties(admin.address, {}), "filler")
    for number in range(partitions):
        values = [b"%d" % offset for offset in range(records)]
        producer.send(topic, [b"k"] * records, values, [1] * records, number)
    producer.flush()
    producer.close()


def poll_until(condition: Callable[[], object], *members: Member) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, [each.calls for each in members]
        for member in members:
            member.consumer.poll()
        time.sleep(0.01)


def offsets_of(messages: list[Any]) -> dict[TopicPartition, list[int]]:
    found: dict[TopicPartition, list[int]] = {}
    for message in messages:
        found.setdefault(TopicPartition(message.topic(), message.partition()), []).append(message.offset())
    return found


def fetch_until(member: Member, count: int) -> dict[TopicPartition, list[int]]:
    messages: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} records"
        messages += member.consumer.fetch(1000, 0.1).records
    assert len(messages) == count
    return offsets_of(messages)


def test_topics_that_are_read_together_are_assigned_together(admin: Admin, namespace: str, join: Join) -> None:
    make_topics(admin, namespace, left=4, right=4)
    members = [join("one", "left", "right")]
    poll_until(lambda: len(members[0].has) == 8, *members)
    members.append(join("two", "left", "right"))
    poll_until(lambda: [len(each.has) for each in members] == [4, 4], *members)
    numbers: list[set[int]] = []
    for member in members:
        left, right = ({p.partition for p in member.has if p.topic == f"{namespace}-{t}"} for t in ("left", "right"))
        assert left == right
        numbers.append(left)
    assert numbers[0] | numbers[1] == {0, 1, 2, 3}
    assert not numbers[0] & numbers[1]


def test_a_newcomer_takes_over_only_what_was_revoked_before(admin: Admin, namespace: str, join: Join) -> None:
    """Incremental: the first member keeps what stays with it, without a moment in which it has nothing."""
    make_topics(admin, namespace, t=4)
    first = join("one", "t")
    poll_until(lambda: len(first.has) == 4, first)
    second = join("two", "t")
    poll_until(lambda: second.has, first, second)
    kinds = [(kind, len(partitions)) for kind, partitions in first.calls if partitions]
    assert kinds == [("assigned", 4), ("revoked", 2)]
    assert first.calls[1][1] == second.has


def test_a_member_beyond_the_partitions_is_in_the_group_but_hears_of_no_assignment(
    admin: Admin, namespace: str, join: Join
) -> None:
    """librdkafka calls back with changes only; that a member has nothing can be seen in the group's description."""
    make_topics(admin, namespace, t=1)
    first = join("one", "t")
    poll_until(lambda: first.has, first)
    second = join("two", "t")

    def described() -> Mapping[str, int]:
        return {member.client_id: len(member.assignment) for member in admin.group_members(namespace)}

    poll_until(lambda: described() == {"one|127.0.0.1:1|1": 1, "two|127.0.0.1:1|1": 0}, first, second)
    assert second.calls == []
    first.close()
    third = join("one", "t")
    poll_until(lambda: third.has, second, third)
    assert second.calls == []


def test_partitions_start_paused(admin: Admin, namespace: str, join: Join) -> None:
    make_topics(admin, namespace, t=2)
    fill(admin, f"{namespace}-t", 2, 10)
    member = join("one", "t")
    poll_until(lambda: len(member.has) == 2, member)
    assert member.consumer.fetch(100, 0.5).records == []
    (half, _) = sorted(member.has)
    member.consumer.resume({half: 4})
    assert fetch_until(member, 6) == {half: [4, 5, 6, 7, 8, 9]}


@pytest.mark.parametrize("attempt", range(3))
def test_a_partition_can_be_resumed_in_the_moment_that_it_is_assigned(
    admin: Admin, namespace: str, join: Join, attempt: int
) -> None:
    make_topics(admin, namespace, t=8)
    fill(admin, f"{namespace}-t", 8, 5)
    member = join("one", "t")
    resumed: set[TopicPartition] = set()

    def resume_what_is_new() -> bool:
        new = member.has - resumed
        if new:
            member.consumer.resume(dict.fromkeys(new, 3))
            resumed.update(new)
        return len(resumed) == 8

    poll_until(resume_what_is_new, member)
    assert fetch_until(member, 16) == {each: [3, 4] for each in resumed}


@pytest.mark.parametrize("paused", ["for a moment", "at once"])
def test_a_partition_whose_beginning_was_deleted_can_be_resumed(
    admin: Admin, namespace: str, join: Join, paused: str
) -> None:
    """Partitions are assigned at offset 0 and paused: that offset may be fetched before the pause arrives."""
    make_topics(admin, namespace, t=4)
    fill(admin, f"{namespace}-t", 4, 5)
    delete_records(admin, {TopicPartition(f"{namespace}-t", number): 3 for number in range(4)})
    member = join("one", "t")
    poll_until(lambda: len(member.has) == 4, member)
    if paused == "for a moment":
        assert member.consumer.fetch(100, 1.0).records == []
    member.consumer.resume(dict.fromkeys(member.has, 3))
    assert fetch_until(member, 8) == {each: [3, 4] for each in member.has}


def test_a_log_that_ends_before_the_position_is_read_from_its_beginning(
    admin: Admin, namespace: str, join: Join
) -> None:
    make_topics(admin, namespace, t=1)
    fill(admin, f"{namespace}-t", 1, 5)
    member = join("one", "t")
    poll_until(lambda: member.has, member)
    (partition,) = member.has
    member.consumer.resume({partition: 9})
    assert fetch_until(member, 5) == {partition: list(range(5))}


def test_pausing_drops_what_was_fetched_and_resuming_reads_it_again(admin: Admin, namespace: str, join: Join) -> None:
    make_topics(admin, namespace, t=1)
    fill(admin, f"{namespace}-t", 1, 20)
    member = join("one", "t")
    poll_until(lambda: member.has, member)
    (partition,) = member.has
    member.consumer.resume({partition: 0})
    (first,) = member.consumer.fetch(1, PATIENCE).records
    assert first.offset() == 0
    member.consumer.pause([partition])
    assert member.consumer.fetch(100, 0.3).records == []
    member.consumer.resume({partition: 0})
    assert fetch_until(member, 20) == {partition: list(range(20))}


def test_a_record_that_a_poll_meets_is_handed_out_by_the_next_fetch(admin: Admin, namespace: str, join: Join) -> None:
    make_topics(admin, namespace, t=1)
    fill(admin, f"{namespace}-t", 1, 5)
    member = join("one", "t")
    poll_until(lambda: member.has, member)
    (partition,) = member.has
    member.consumer.resume({partition: 0})
    poll_until(lambda: len(member.consumer._unprocessed) == 2, member)
    assert fetch_until(member, 5) == {partition: [0, 1, 2, 3, 4]}


def test_the_end_of_a_partition_is_told_past_the_marker_of_a_transaction(
    admin: Admin, namespace: str, join: Join
) -> None:
    """A record's offset never gets there: whoever waits for the end by records waits for ever."""
    make_topics(admin, namespace, t=1)
    topic = f"{namespace}-t"
    producer = Producer({"bootstrap.servers": admin.address, "transactional.id": namespace})
    producer.init_transactions(PATIENCE)
    for _ in range(2):
        producer.begin_transaction()
        producer.produce(topic, b"v")
        producer.commit_transaction(PATIENCE)
    member = join("one", "t")
    poll_until(lambda: member.has, member)
    (partition,) = member.has
    assert admin.end_offsets([partition]) == {partition: 4}
    member.consumer.resume({partition: 0})
    ends: dict[TopicPartition, int] = {}
    offsets: list[int] = []
    deadline = time.monotonic() + PATIENCE
    while ends != {partition: 4}:
        assert time.monotonic() < deadline, ends
        found = member.consumer.fetch(100, 0.1)
        offsets += [each.offset() for each in found.records]
        ends |= found.ends
    assert offsets == [0, 2]


def test_no_fetch_gives_more_than_was_asked_for(admin: Admin, namespace: str, join: Join) -> None:
    make_topics(admin, namespace, t=1)
    fill(admin, f"{namespace}-t", 1, 30)
    member = join("one", "t")
    poll_until(lambda: member.has, member)
    (partition,) = member.has
    member.consumer.resume({partition: 0})
    seen: list[int] = []
    deadline = time.monotonic() + PATIENCE
    while len(seen) < 30:
        assert time.monotonic() < deadline
        found = member.consumer.fetch(7, 0.1).records
        assert len(found) <= 7
        seen += [each.offset() for each in found]
    assert seen == list(range(30))


def test_a_restarted_member_gets_its_partitions_back_and_the_others_do_not_move(
    admin: Admin, namespace: str, join: Join
) -> None:
    make_topics(admin, namespace, t=4)
    first, second = join("one", "t"), join("two", "t")
    poll_until(lambda: [len(first.has), len(second.has)] == [2, 2], first, second)
    had, kept, calls = first.has, second.has, len(second.calls)
    first.close()
    assert first.has == frozenset()
    again = join("one", "t")
    poll_until(lambda: again.has == had, again, second)
    assert second.has == kept
    assert [partitions for _, partitions in second.calls[calls:] if partitions] == []


def test_the_name_of_a_living_member_is_refused_to_another_process(admin: Admin, namespace: str, join: Join) -> None:
    make_topics(admin, namespace, t=1)
    first = join("one", "t")
    poll_until(lambda: first.has, first)
    intruder = join("one", "t")
    with pytest.raises(UnreleasedInstanceIdException, match=f"the group {namespace} still counts one as a member"):
        poll_until(lambda: False, intruder, first)
    intruder.close()
    first.consumer.poll()
    assert first.has == {TopicPartition(f"{namespace}-t", 0)}


MEMBER = """
import sys, time
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.client.client_properties import client_properties
address, group, topic = sys.argv[1:]
found = []
consumer = GroupConsumer(client_properties(address, {}), Membership(group, "one", "one|h:1|1"), found.append, print)
consumer.subscribe({topic})
while not found:
    consumer.poll()
    time.sleep(0.01)
print("assigned", flush=True)
while True:
    consumer.poll()
    time.sleep(0.05)
"""


def test_a_killed_member_s_name_is_free_again_once_its_session_has_ended(
    admin: Admin, namespace: str, join: Join
) -> None:
    make_topics(admin, namespace, t=1)
    command = [sys.executable, "-c", MEMBER, admin.address, namespace, f"{namespace}-t"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "assigned\n"
        process.kill()
    killed = time.monotonic()
    refusals = 0
    while True:
        member = join("one", "t")
        try:
            poll_until(lambda member=member: member.has, member)  # type: ignore[misc]
            break
        except UnreleasedInstanceIdException:
            refusals += 1
            member.close()
            assert time.monotonic() - killed < PATIENCE
            time.sleep(0.5)  # as a thread does before it joins again
    assert refusals > 0
    assert time.monotonic() - killed < SESSION + 10


def test_committed_offsets_are_where_the_next_member_goes_on(admin: Admin, namespace: str, join: Join) -> None:
    make_topics(admin, namespace, t=2)
    member = join("one", "t")
    poll_until(lambda: len(member.has) == 2, member)
    first, second = sorted(member.has)
    assert member.consumer.commit({first: 7, second: 0}, lambda: False)
    assert admin.committed_offsets(namespace, [first, second]) == {first: 7, second: 0}
    assert member.consumer.commit({first: 9}, lambda: False)
    assert admin.committed_offsets(namespace, [first, second]) == {first: 9, second: 0}


def test_offsets_that_were_committed_for_an_earlier_topic_of_the_name_are_left_out(
    admin: Admin, namespace: str, join: Join
) -> None:
    make_topics(admin, namespace, t=2)
    topic = f"{namespace}-t"
    member = join("one", "t")
    poll_until(lambda: len(member.has) == 2, member)
    first, second = sorted(member.has)
    ids = admin.topic_ids([topic])
    assert member.consumer.commit({first: 7}, lambda: False, ids)
    assert member.consumer.commit({second: 5}, lambda: False, {topic: "earlier"})
    assert admin.committed_offsets(namespace, [first, second]) == {first: 7}


def test_a_commit_of_a_member_that_the_group_has_dropped_changes_nothing(
    admin: Admin, namespace: str, join: Join
) -> None:
    """A member that has not polled for too long has lost its partitions; whoever has them reads the batch again."""
    make_topics(admin, namespace, t=1)
    member = join("one", "t", **{"max.poll.interval.ms": 6000})
    poll_until(lambda: member.has, member)
    (partition,) = member.has
    deadline = time.monotonic() + PATIENCE
    while admin.group_members(namespace):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert not member.consumer.commit({partition: 7}, lambda: False)
    assert admin.committed_offsets(namespace, [partition]) == {}


def test_a_commit_waits_for_a_broker_that_is_away_and_then_holds(tmp_path: Path) -> None:
    group, partition = "group", TopicPartition("t", 0)
    with EmbeddedBroker(tmp_path) as broker:
        admin = Admin(client_properties(broker.bootstrap_servers, {}))
        admin.create_topics([TopicSpec("t", 1)])
        member = Member(broker.bootstrap_servers, group, "one", {"t"})
        poll_until(lambda: member.has, member)
        broker.stop()
        since = time.monotonic()
        assert not member.consumer.commit({partition: 7}, lambda: True)
        assert time.monotonic() - since < 5, "whoever closes has to wait for the broker"
        results: list[bool] = []
        committing = threading.Thread(
            target=lambda: results.append(member.consumer.commit({partition: 8}, lambda: False))
        )
        committing.start()
        committing.join(1.0)
        assert committing.is_alive()
        broker.start()
        committing.join(PATIENCE)
        assert results == [True]
        assert admin.committed_offsets(group, [partition]) == {partition: 8}
        member.close()
        admin.close()
