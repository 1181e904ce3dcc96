"""The embedded broker, really started: it answers, keeps its data, says what is wrong, leaves nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from waiting import alive, eventually

from streams_runtime.errors import EnvironmentException
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker

pytestmark = pytest.mark.integration

DEADLINE = 30.0
PARENT = """
import pathlib, sys, time
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker

broker = EmbeddedBroker(pathlib.Path(sys.argv[1]))
broker.start()
print(broker.pid, flush=True)
time.sleep(1000)
"""


def create(address: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(DEADLINE)


def topics(address: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": address}).list_topics(timeout=DEADLINE).topics)


def write(address: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": address})
    producer.produce(topic, value)
    assert producer.flush(DEADLINE) == 0


def read(address: str, topic: str, count: int) -> list[bytes]:
    settings = {"bootstrap.servers": address, "group.id": f"{topic}-readers", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "group.protocol": "consumer"})
    consumer.subscribe([topic])
    try:
        return [message.value() for message in consumer.consume(count, DEADLINE)]
    finally:
        consumer.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "broker", heap="256m") as running:
        yield running


def test_a_started_broker_takes_orders_at_once(broker, namespace):
    create(broker.bootstrap_servers, namespace)
    assert namespace in topics(broker.bootstrap_servers)


def test_a_topic_that_nobody_made_is_not_made_by_writing_to_it(broker, namespace):
    refusals: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "topic.metadata.propagation.max.ms": 2000})
    producer.produce(namespace, b"", on_delivery=lambda error, _: refusals.append(error))
    assert producer.flush(DEADLINE) == 0
    assert refusals[0] is not None
    assert namespace not in topics(broker.bootstrap_servers)


def test_a_member_of_the_consumer_protocol_gets_its_partitions_within_seconds(broker, namespace):
    create(broker.bootstrap_servers, namespace, partitions=4)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": namespace}
    consumer = Consumer(
        {
            **settings,
            "group.protocol": "consumer",
            "group.remote.assignor": "range",
            "group.instance.id": "one",
        }
    )
    consumer.subscribe([namespace])

    def assigned() -> bool:
        consumer.poll(0.05)
        return len(consumer.assignment()) == 4

    started = time.monotonic()
    try:
        eventually(assigned)
    finally:
        consumer.close()
    assert time.monotonic() - started < 10


def test_what_was_written_is_there_after_a_stop_a_crash_and_in_a_later_object(own):
    address, port = own.bootstrap_servers, own.port
    create(address, "kept")
    write(address, "kept", b"before a stop")
    assert own.stop()
    assert not own.running

    own.start()
    assert own.port == port
    write(address, "kept", b"before a crash")
    own.kill()

    with EmbeddedBroker(own.data_dir, heap="256m") as later:
        assert read(later.bootstrap_servers, "kept", 2) == [b"before a stop", b"before a crash"]


def test_a_port_in_use_is_refused_by_its_number(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        broker = EmbeddedBroker(tmp_path, port)
        with pytest.raises(EnvironmentException, match=f"port {port} of 127.0.0.1 can't be used"):
            broker.start()
    assert not broker.running


def test_a_folder_in_use_is_refused_with_its_user(own):
    with pytest.raises(EnvironmentException, match=f"in use by process {os.getpid()}"):
        EmbeddedBroker(own.data_dir).start()
    assert own.running
    assert topics(own.bootstrap_servers) == set()


def test_a_wrong_setting_is_told_in_the_brokers_own_words(tmp_path):
    broker = EmbeddedBroker(tmp_path, config={"num.io.threads": "none"})
    with pytest.raises(EnvironmentException, match=r"num\.io\.threads"):
        broker.start()
    assert not broker.running


def test_the_environment_gives_its_jvm_options_as_kafkas_own_scripts_take_them(tmp_path, monkeypatch):
    monkeypatch.setenv("KAFKA_JVM_PERFORMANCE_OPTS", "-XX:+UseSerialGC -Dmarked=1")
    with EmbeddedBroker(tmp_path, heap="256m") as running:
        command = Path(f"/proc/{running.pid}/cmdline").read_bytes().split(b"\0")
    assert {b"-Xmx256m", b"-XX:+UseSerialGC", b"-Dmarked=1"} <= {*command}
    assert b"-XX:+UseG1GC" not in command
    monkeypatch.setenv("KAFKA_JVM_PERFORMANCE_OPTS", "-XX:+UseNothing")
    with pytest.raises(EnvironmentException, match="Unrecognized VM option 'UseNothing'"):
        EmbeddedBroker(tmp_path / "new").start()
    with pytest.raises(EnvironmentException, match="Unrecognized VM option 'UseNothing'"):
        EmbeddedBroker(tmp_path).start()


def test_a_broker_that_dies_while_it_starts_leaves_its_last_log_lines_in_the_error(own):
    own.stop()
    (own.data_dir / "kafka" / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=7\n")
    with pytest.raises(EnvironmentException, match=r"(?s)ended by itself.*server\.log.*node id 7") as caught:
        own.start()
    assert not own.running
    assert "\tat " not in str(caught.value)


def test_a_broker_that_was_shot_is_noticed_and_can_be_started_again(own):
    os.kill(own.pid, signal.SIGKILL)
    assert own.wait(DEADLINE)
    assert not own.running
    assert "exit code -9" in own.why_it_ended()
    own.start()
    assert topics(own.bootstrap_servers) == set()


def test_no_jvm_outlives_a_parent_that_is_shot(tmp_path):
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        broker = int(parent.stdout.readline())
        was_alive = alive(broker)
        parent.kill()
    assert was_alive
    eventually(lambda: not alive(broker))
