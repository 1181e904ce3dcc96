"""Questions and orders to a real broker."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import time
import uuid
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from clients import delete_records
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from waiting import eventually

from streams_runtime.errors import BrokerNotAvailableException, ConfigException
from streams_runtime.kafka.admin.connection import FailedAttempt
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.client.librdkafka_errors import QuietLog
from streams_runtime.kafka.types import TopicPartition, TopicSpec

pytestmark = pytest.mark.integration


@pytest.fixture
def topic(admin: Admin, namespace: str) -> str:
    """A topic of three partitions, each with records 0 to 9."""
    name = f"{namespace}-records"
    admin.create_topics([TopicSpec(name, 3)])
    eventually(lambda: len(admin.end_offsets(partitions_of(name))) == 3)
    producer = Producer({"bootstrap.servers": admin.address}, logger=QuietLog())
    for number in range(30):
        producer.produce(name, b"v", partition=number % 3)
    assert producer.flush(30) == 0
    return name


def partitions_of(name: str, count: int = 3) -> list[TopicPartition]:
    return [TopicPartition(name, number) for number in range(count)]


@contextmanager
def member(address: str, group: str, name: str, topic: str, protocol: str) -> Iterator[Consumer]:
    config: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": group,
        "client.id": f"{name}|127.0.0.1:8080|thread-1",
        "group.instance.id": name,
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    assignor = "group.remote.assignor" if protocol == "consumer" else "partition.assignment.strategy"
    consumer = Consumer({**config, assignor: "range"}, logger=QuietLog())
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def test_topics_are_described_with_partitions_and_effective_configuration(admin: Admin, namespace: str) -> None:
    compacted, plain, absent = (f"{namespace}-{name}" for name in ("compacted", "plain", "absent"))
    result = admin.create_topics([TopicSpec(compacted, 2, -1, {"cleanup.policy": "compact"}), TopicSpec(plain, 5)])
    assert result.created == {compacted, plain}
    found = admin.describe_topics([compacted, plain, absent])
    assert {name: each.partitions for name, each in found.items()} == {compacted: 2, plain: 5}
    assert found[compacted].config["cleanup.policy"] == "compact"
    assert found[plain].config["retention.bytes"] == "-1"
    assert found[plain].replication_factor == 1


def test_each_topic_has_its_own_result(admin: Admin, namespace: str) -> None:
    good, there, bad = (f"{namespace}-{name}" for name in ("good", "there", "bad"))
    admin.create_topics([TopicSpec(there, 1)])
    result = admin.create_topics([TopicSpec(good, 1), TopicSpec(there, 1), TopicSpec(bad, 1, -1, {"no.such": "1"})])
    assert result.created == {good}
    assert result.existed == {there}
    assert isinstance(result.refused[bad], ConfigException)
    assert "no.such" in str(result.refused[bad])


def test_asking_whether_topics_could_be_made_makes_none(admin: Admin, namespace: str) -> None:
    result = admin.create_topics(
        [TopicSpec(f"{namespace}-a", 1), TopicSpec(f"{namespace}-b", 1, 99)], validate_only=True
    )
    assert result.created == {f"{namespace}-a"}
    assert result.refused.keys() == {f"{namespace}-b"}
    assert admin.describe_topics([f"{namespace}-a"]) == {}


def test_deleting_a_topic_that_is_not_there_is_no_error(admin: Admin, topic: str, namespace: str) -> None:
    admin.delete_topics([topic, f"{namespace}-absent"])
    eventually(lambda: not admin.describe_topics([topic]))


def test_offsets_of_many_partitions_come_in_one_answer_without_those_that_are_absent(
    admin: Admin, topic: str, namespace: str
) -> None:
    asked = [*partitions_of(topic, 5), TopicPartition(f"{namespace}-absent", 0)]
    assert admin.end_offsets(asked) == dict.fromkeys(partitions_of(topic), 10)
    assert admin.start_offsets(asked) == dict.fromkeys(partitions_of(topic), 0)


def test_offsets_of_nothing_but_absent_partitions_are_no_offsets(admin: Admin, topic: str, namespace: str) -> None:
    absent = [TopicPartition(topic, 7), TopicPartition(f"{namespace}-absent", 0)]
    assert admin.end_offsets(absent) == {}
    delete_records(admin, dict.fromkeys(absent, 1))


def test_offsets_of_a_topic_that_was_made_this_moment_are_answered(admin: Admin, namespace: str) -> None:
    for number in range(20):
        name = f"{namespace}-{number}"
        admin.create_topics([TopicSpec(name, 3)])
        assert admin.end_offsets(partitions_of(name)) == dict.fromkeys(partitions_of(name), 0)


def test_offsets_are_found_by_time(admin: Admin, namespace: str) -> None:
    name = f"{namespace}-timed"
    admin.create_topics([TopicSpec(name, 3)])
    producer = Producer({"bootstrap.servers": admin.address}, logger=QuietLog())
    for time_ in (1000, 3000, 2000, 4000):  # out of order: what counts is the first one that is as late
        producer.produce(name, b"v", partition=0, timestamp=time_)
    producer.produce(name, b"v", partition=1, timestamp=500)
    assert producer.flush(30) == 0
    first, second, empty = partitions_of(name)
    for at, offset in {0: 0, 1000: 0, 1001: 1, 2000: 1, 3000: 1, 3001: 3, 4001: None}.items():
        assert admin.offsets_at({first: at}) == {first: offset}
    absent = TopicPartition(f"{namespace}-absent", 0)
    asked = {first: 3001, second: 501, empty: 0, absent: 0}
    assert admin.offsets_at(asked) == {first: 3, second: None, empty: None}
    assert admin.offsets_at({}) == {}


def test_the_end_for_readers_of_committed_data_is_before_an_open_transaction(admin: Admin, topic: str) -> None:
    first = TopicPartition(topic, 0)
    config = {"bootstrap.servers": admin.address, "transactional.id": uuid.uuid4().hex}
    producer = Producer(config, logger=QuietLog())
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(30) == 0
    assert admin.end_offsets([first]) == {first: 11}
    assert admin.end_offsets([first], read_committed=True) == {first: 10}
    producer.abort_transaction(30)


def test_deleted_records_move_the_start(admin: Admin, topic: str, namespace: str) -> None:
    first, second, third = partitions_of(topic)
    delete_records(admin, {first: 4, third: 10, TopicPartition(f"{namespace}-absent", 0): 1})
    assert admin.start_offsets([first, second, third]) == {first: 4, second: 0, third: 10}


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_committed_offsets_leave_out_partitions_without_one(
    admin: Admin, topic: str, namespace: str, protocol: str
) -> None:
    first, second, third = partitions_of(topic)
    assert admin.committed_offsets(namespace, [first, second]) == {}
    with member(admin.address, namespace, "app-0", topic, protocol) as consumer:
        eventually(lambda: consumer.poll(0.1) is not None or len(consumer.assignment()) == 3)
        eventually(lambda: (consumer.poll(0.1), len(consumer.assignment()) == 3)[1])
        offsets = [ConfluentTopicPartition(topic, 0, 7), ConfluentTopicPartition(topic, 2, 0)]
        consumer.commit(offsets=offsets, asynchronous=False)
    assert admin.committed_offsets(namespace, [first, second, third]) == {first: 7, third: 0}


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_members_of_a_group_show_their_client_id_and_what_they_have(
    admin: Admin, topic: str, namespace: str, protocol: str
) -> None:
    with ExitStack() as stack:
        consumers = [
            stack.enter_context(member(admin.address, namespace, name, topic, protocol)) for name in ("app-0", "app-1")
        ]

        def all_assigned() -> bool:
            for consumer in consumers:
                consumer.poll(0.05)
            # Members have to know it themselves too: in the classic protocol librdkafka's close() hangs for ever
            # when an assignment that was not polled yet is on its way.
            known = sorted(len(consumer.assignment()) for consumer in consumers)
            return known == [1, 2] == sorted(len(each.assignment) for each in admin.group_members(namespace))

        eventually(all_assigned, seconds=60)
        members = admin.group_members(namespace)
        assert [each.client_id for each in members] == [
            "app-0|127.0.0.1:8080|thread-1",
            "app-1|127.0.0.1:8080|thread-1",
        ]
        assert [each.instance_id for each in members] == ["app-0", "app-1"]
        assert all(each.host == "127.0.0.1" for each in members)
        assert sorted(p for each in members for p in each.assignment) == partitions_of(topic)
        assert members[0].assignment == (TopicPartition(topic, 0), TopicPartition(topic, 1))


# Says when all that ask are answered, and when none of them is, in turns.
ASKING = """
import sys, threading
from streams_runtime.errors import StreamsException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties

COUNT = 12
answered, ending, changed = [None] * COUNT, threading.Event(), threading.Condition()

def ask(number):
    admin = Admin(client_properties(sys.argv[1], {}))
    while not ending.wait(0.1):
        try:
            found = admin.group_members(sys.argv[2], timeout=3 + number / COUNT) == ()
        except StreamsException:  # no broker, or one that does not know yet what it coordinates
            found = False
        with changed:
            answered[number] = found
            changed.notify()
    admin.close()

def tell():
    for state in [False, True] * 1000:
        with changed:
            changed.wait_for(lambda: answered == [state] * COUNT)
        print("answered" if state else "not answered", flush=True)

threading.Thread(target=tell, daemon=True).start()
asking = [threading.Thread(target=ask, args=(number,)) for number in range(COUNT)]
for each in asking:
    each.start()
sys.stdin.read()
ending.set()
for each in asking:
    each.join()
"""


def test_members_are_answered_after_an_outage_that_they_were_asked_for_in(tmp_path: Path, namespace: str) -> None:
    """One admin client of librdkafka, asked before, in and after it, would end this process."""
    with EmbeddedBroker(tmp_path) as own, closing(Admin(client_properties(own.bootstrap_servers, {}), 30)) as admin:
        admin.create_topics([TopicSpec(namespace, 1)])
        with member(own.bootstrap_servers, namespace, "app-0", namespace, "consumer") as consumer:

            def known() -> bool:
                consumer.poll(0.05)
                return [each.instance_id for each in admin.group_members(namespace)] == ["app-0"]

            eventually(known)
            own.stop()
            with pytest.raises(BrokerNotAvailableException, match="refused"):
                admin.group_members(namespace)
            own.start()
            eventually(lambda: consumer.poll(0.05) is None and known(), seconds=60)


def test_a_process_that_asks_for_members_in_an_outage_outlives_it(tmp_path: Path, namespace: str) -> None:
    """Those that ask are so many that one of them has just given a question up when the broker is back."""
    with EmbeddedBroker(tmp_path) as own:
        own.stop()
        command = [sys.executable, "-c", ASKING, own.bootstrap_servers, namespace]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
            assert asking.stdin is not None
            assert asking.stdout is not None
            assert asking.stdout.readline() == "not answered\n"
            for _ in range(3):
                own.start()
                assert asking.stdout.readline() == "answered\n"
                own.stop()
                assert asking.stdout.readline() == "not answered\n"
            own.start()
            asking.stdin.close()
            assert asking.wait(60) == 0


def test_a_group_that_does_not_exist_has_no_members(admin: Admin, namespace: str) -> None:
    assert admin.group_members(namespace) == ()


def test_a_broker_that_is_away_is_reported_with_its_address_within_the_deadline(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        away = Admin(client_properties(address, {}), timeout=1)
        started = time.monotonic()
        with pytest.raises(BrokerNotAvailableException, match=address):
            away.describe_topics(["any"])
        with pytest.raises(BrokerNotAvailableException, match=address):
            away.committed_offsets("group", [TopicPartition("any", 0)])
        seen: list[FailedAttempt] = []
        with pytest.raises(BrokerNotAvailableException, match=f"{address}.*connection refused"):
            away.wait_for_broker(seen.append, timeout=1)
        assert time.monotonic() - started < 10
        assert seen
        away.close()
    assert capfd.readouterr() == ("", "")


def test_a_look_that_nobody_has_answered_keeps_no_connection_beyond_the_close() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        admin = Admin(client_properties(f"127.0.0.1:{silent.getsockname()[1]}", {}))
        look = admin.look_for(["orders"])
        client = weakref.ref(admin._client)
        admin.refresh()
        gc.collect()
        assert client() is not None, "an answer could come"
        admin.close()
    assert client() is None, "here and now, without a garbage collection"
    assert not look.absent


def test_a_broker_that_answers_ends_the_waiting(admin: Admin) -> None:
    seen: list[FailedAttempt] = []
    assert admin.wait_for_broker(seen.append, timeout=30)
    assert seen == []
