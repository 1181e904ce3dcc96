"""`streamsapp broker`: says where it is, stops in order, cleans up after itself."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from waiting import eventually

pytestmark = pytest.mark.integration

DEADLINE = 60.0
COMMAND = [
    sys.executable,
    "-c",
    "import typer; from streams_runtime.cli.broker import broker; typer.run(broker)",
]


@contextmanager
def streamsapp_broker(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def makes_a_topic(address: str) -> bool:
    """Asked each time by a client that has not known the brokers before, of which one may have been the controller."""
    client = AdminClient({"bootstrap.servers": address})
    try:
        client.create_topics([NewTopic("replicated", 1)], request_timeout=5)["replicated"].result(DEADLINE)
    except KafkaException as failure:
        return bool(failure.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
    return True


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_one_json_line_and_stops_in_order_on_a_signal(stop):
    with streamsapp_broker("--output", "json") as process:
        facts = json.loads(process.stdout.readline())
        brokers = AdminClient({"bootstrap.servers": facts["bootstrap_servers"]}).list_topics(timeout=DEADLINE).brokers
        process.send_signal(stop)
        assert process.wait(DEADLINE) == 0
        assert process.stdout.read() == ""
        assert process.stderr.read() == ""
    assert len(brokers) == 1
    assert not Path(f"/proc/{facts['pid']}").exists()
    assert not Path(facts["data_dir"]).exists()


def test_a_folder_that_was_given_stays_and_shows_an_orderly_stop(tmp_path):
    with streamsapp_broker("--data-dir", str(tmp_path / "data")) as process:
        assert process.stdout.readline().startswith("broker at 127.0.0.1:")
        process.terminate()
        assert process.wait(DEADLINE) == 0
    assert (tmp_path / "data" / "kafka" / ".kafka_cleanshutdown").exists()


def test_three_brokers_go_on_without_one_which_is_told_by_its_number(tmp_path):
    with streamsapp_broker("--brokers", "3", "--data-dir", str(tmp_path / "data"), "--output", "json") as process:
        facts = json.loads(process.stdout.readline())
        admin = AdminClient({"bootstrap.servers": facts["bootstrap_servers"]})
        assert set(admin.list_topics(timeout=DEADLINE).brokers) == {1, 2, 3}
        os.kill(facts["pids"][1], signal.SIGKILL)
        assert process.stderr.readline().startswith("broker 2: the embedded broker ended by itself (exit code -9)")
        eventually(lambda: makes_a_topic(facts["bootstrap_servers"]), "a topic is made by those that are left", 180)
        process.terminate()
        assert process.wait(DEADLINE) == 0
    assert not [pid for pid in facts["pids"] if Path(f"/proc/{pid}").exists()]
    with streamsapp_broker("--data-dir", str(tmp_path / "data")) as process:
        assert process.wait(DEADLINE) == 1
        assert "holds the data of 3 brokers. Give --brokers 3" in process.stderr.read()


def test_a_signal_while_it_starts_stops_it_as_well(tmp_path):
    with streamsapp_broker("--data-dir", str(tmp_path / "data")) as process:
        lock = tmp_path / "data" / "broker.lock"
        while not lock.exists():
            assert process.poll() is None
        process.terminate()
        assert process.wait(DEADLINE) == 0
        assert process.stdout.read() == ""


def test_a_port_in_use_is_one_line_on_stderr_without_a_stack_trace():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with streamsapp_broker("--port", str(port)) as process:
            assert process.wait(DEADLINE) == 1
            error = process.stderr.read()
    assert error.startswith(f"port {port} of 127.0.0.1 can't be used")
    assert len(error.splitlines()) == 1


def test_a_broker_that_dies_ends_the_command_with_its_last_log_lines():
    with streamsapp_broker("--output", "json") as process:
        facts = json.loads(process.stdout.readline())
        subprocess.run(["kill", "-KILL", str(facts["pid"])], check=True)
        assert process.wait(DEADLINE) == 1
        assert "ended by itself (exit code -9)" in process.stderr.read()
