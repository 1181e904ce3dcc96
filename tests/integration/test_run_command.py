"""`streamsapp run`: an application's instances as processes of this machine, to their end."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer

from streams_runtime.cli.local.leftovers import members
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition, TopicSpec

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DEADLINE = 240.0
"""Seconds; Spark takes six to ten to start on a free machine, and several times that on a busy one."""
PARTITIONS = 2


COUNTING = """\
class Counting:
    state_type = "BIGINT"

    def zero(self):
        return 0

    def add(self, count, records):
        return count + len(records)
"""


class Run:
    """A `streamsapp run … --output json`, followed event by event."""

    def __init__(self, *arguments: object) -> None:
        command = [str(Path(sys.executable).with_name("streamsapp")), "run", *map(str, arguments), "--output", "json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.events: list[dict[str, Any]] = []
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next event that is `wanted`."""
        end = time.monotonic() + DEADLINE
        while (event := self._lines.get(timeout=max(end - time.monotonic(), 0.01))) is not None:
            self.events.append(event)
            if wanted(event):
                return event
        raise AssertionError(f"the run ended first: {self.said()}, {self.process.stderr.read()}")

    def end(self) -> int:
        """The exit code; all events are there then."""
        code = self.process.wait(DEADLINE)
        while (event := self._lines.get(timeout=DEADLINE)) is not None:
            self.events.append(event)
        return code

    def said(self) -> list[str]:
        """The names of the events that are not overviews."""
        return [event["event"] for event in self.events if "application" not in event]

    def of(self, name: str) -> dict[str, Any]:
        """The event of this name."""
        return next(event for event in self.events if event["event"] == name)

    def pids(self) -> set[int]:
        """Every process that the events tell of: instances, and the run's own broker."""
        instances = {each["pid"] for event in self.events for each in event.get("instances", ())}
        return {pid for pid in {*instances, *(event.get("pid") for event in self.events)} if pid}

    def _read(self) -> None:
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(json.loads(line))
        self._lines.put(None)


@contextmanager
def running(*arguments: object):
    run = Run(*arguments)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.process.kill()
        run.process.wait()
        run.process.stderr.close()


def nothing_is_left_of(pids: set[int]) -> bool:
    """Whether the processes and all that they started are gone in time."""
    end = time.monotonic() + DEADLINE
    while members(pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def application(tmp_path: Path, namespace: str) -> Path:
    """Amounts by user, then by the user's first letter, which takes a repartition topic and a class beside the file."""
    aggregate = {"total": "sum(amount)", "n": "count(*)"}
    by_letter = {"total": "sum(amount)", "n": "python('run_counting:Counting', amount)"}
    (tmp_path / "run_counting.py").write_text(COUNTING)
    topology = {
        "sources": [
            {
                "name": "orders",
                "topic": f"{namespace}-orders",
                "key": {"format": "string"},
                "value": {"format": "json", "schema": "amount BIGINT"},
            }
        ],
        "steps": [
            {"name": "by-user", "from": "orders", "aggregate": aggregate, "store": "by-user"},
            {"name": "letters", "from": "orders", "keyBy": "substring(_key, 1, 1)"},
            {"name": "by-letter", "from": "letters", "aggregate": by_letter, "store": "by-letter"},
        ],
        "sinks": [
            {"from": "by-user", "topic": f"{namespace}-users"},
            {"from": "by-letter", "topic": f"{namespace}-letters"},
        ],
    }
    file = tmp_path / "app.yaml"
    head = {"apiVersion": "streamsoperator.io/v1alpha1", "kind": "StreamsApplication", "metadata": {"name": namespace}}
    file.write_text(yaml.safe_dump({**head, "spec": {"topology": topology}}))
    return file


def make_topics(address: str, namespace: str) -> Admin:
    admin = Admin(client_properties(address, {}))
    names = [f"{namespace}-{name}" for name in ("orders", "users", "letters")]
    assert not admin.create_topics([TopicSpec(name, PARTITIONS) for name in names]).refused
    return admin


def produce(address: str, namespace: str, first: int, last: int) -> None:
    """Order number i is of user<i % 7> in small letters, or in big ones when i is a multiple of three."""
    numbers = range(first, last)
    keys = [user_of(number).encode() for number in numbers]
    values = [json.dumps({"amount": number}).encode() for number in numbers]
    producer = BatchProducer(client_properties(address, {}), "test")
    producer.send(f"{namespace}-orders", keys, values, [1_700_000_000_000] * len(keys))
    producer.flush()
    producer.close()


def user_of(number: int) -> str:
    name = f"{'abcdefg'[number % 7]}-user"
    return name.upper() if number % 3 == 0 else name


def totals(count: int, key_of: Callable[[str], str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for number in range(count):
        row = found.setdefault(key_of(user_of(number)), {"total": 0, "n": 0})
        row["total"] += number
        row["n"] += 1
    return found


def last_values(admin: Admin, topic: str) -> dict[str, dict[str, int]]:
    """The last value of each key of a topic."""
    ends = admin.end_offsets([TopicPartition(topic, number) for number in range(PARTITIONS)])
    consumer = Consumer({"bootstrap.servers": admin.address, "group.id": f"test-{topic}", "log_level": 0})
    found = {}
    try:
        from confluent_kafka import TopicPartition as Place

        consumer.assign([Place(each.topic, each.partition, 0) for each in ends])
        for _ in range(sum(ends.values())):
            message = consumer.poll(DEADLINE)
            assert message is not None
            assert message.error() is None
            found[message.key().decode()] = json.loads(message.value())
    finally:
        consumer.close()
    return found


def results_are(admin: Admin, namespace: str, count: int) -> None:
    assert last_values(admin, f"{namespace}-users") == totals(count, lambda user: user)
    assert last_values(admin, f"{namespace}-letters") == totals(count, lambda user: user[0])


def write_browser(folder: Path, opened: Path) -> Path:
    """A program that takes an address as a browser does, and notes how the page and its topology are answered."""
    file = folder / "browser.py"
    file.write_text(
        "import sys, urllib.request as r\n"
        "page, topology = (r.urlopen(sys.argv[1] + path) for path in ('', 'topology'))\n"
        f"open({str(opened)!r}, 'w').write(f'{{sys.argv[1]}}\\n{{page.status}} {{page.headers[\"Content-Type\"]}}"
        " {topology.status}\\n')\n"
    )
    return file


def test_a_run_until_caught_up_ends_with_all_processed_and_nothing_left(broker, namespace, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    admin = make_topics(broker.bootstrap_servers, namespace)
    produce(broker.bootstrap_servers, namespace, 0, 5000)
    file = application(tmp_path, namespace)
    opened = tmp_path / "opened"
    monkeypatch.setenv("BROWSER", f"{sys.executable} {write_browser(tmp_path, opened)} %s")
    with running(file, "--bootstrap-servers", broker.bootstrap_servers, "--until-caught-up", "--open") as run:
        assert run.end() == 0
    results_are(admin, namespace, 5000)
    assert run.said() == ["page", "caught-up", "stopping", "ended", "exit"]
    assert run.of("page")["opened"] is True
    assert opened.read_text().splitlines() == [run.of("page")["url"], "200 text/html; charset=utf-8 200"]
    last = next(event for event in reversed(run.events) if "application" in event)
    assert {row["topic"]: row["lag"] for row in last["topics"]} == {
        f"{namespace}-orders": 0,
        f"{namespace}-letters-repartition": 0,
    }
    assert last["application"]["setup"] == "Created"
    assert nothing_is_left_of(run.pids())
    assert list((tmp_path / "tmp").glob("streamsapp-*")) == []


def test_an_instance_in_error_ends_the_run_with_its_reason_and_is_not_restarted(broker, namespace, tmp_path):
    file = application(tmp_path, namespace)
    with running(file, "--bootstrap-servers", broker.bootstrap_servers, "--state-dir", tmp_path / "state") as run:
        assert run.end() == 70
    ended = run.of("ended")
    assert ended["class"] == "MissingSourceTopicException"
    assert f"{namespace}-orders" in ended["message"]
    assert Path(ended["log"]).read_text() != ""
    assert run.said() == ["ended", "exit"]
    last = next(event for event in reversed(run.events) if "application" in event)
    assert (last["application"]["state"], last["application"]["setup"]) == ("ERROR", "MissingSourceTopics")
    assert nothing_is_left_of(run.pids())


def test_one_instance_that_asks_for_the_end_of_the_application_ends_the_other_too(broker, namespace, tmp_path):
    address = broker.bootstrap_servers
    make_topics(address, namespace).close()
    file = application(tmp_path, namespace)
    document = yaml.safe_load(file.read_text())
    document["spec"]["processing"] = {"onUncaughtException": "shutdownApplication"}
    file.write_text(yaml.safe_dump(document))
    with running(file, "--bootstrap-servers", address, "--instances", "2", "--state-dir", tmp_path / "state") as run:
        run.wait_for(lambda event: event.get("application", {}).get("state") == "RUNNING")
        producer = BatchProducer(client_properties(address, {}), "test")
        producer.send(f"{namespace}-orders", [b"ada"], [b"{oops"], [1_700_000_000_000])
        producer.flush()
        producer.close()
        assert run.end() == 70
    asked = run.of("shutdown-application")["instance"]
    ended = {event["instance"]: event for event in run.events if event["event"] == "ended"}
    assert ended[asked]["class"] == "DeserializationException"
    (other,) = set(ended) - {asked}
    # The other one may have met the record itself, had the partition come to it first.
    assert ended[other]["class"] in ("ShutdownRequestedException", "DeserializationException")
    if ended[other]["class"] == "ShutdownRequestedException":
        assert asked in ended[other]["message"]
        assert f"{namespace}-orders" in ended[other]["message"]
    assert not [event for event in run.events if event["event"] == "restart"]
    assert nothing_is_left_of(run.pids())


def test_a_killed_instance_is_restarted_and_ctrl_c_then_leaves_no_process(broker, namespace, tmp_path):
    address = broker.bootstrap_servers
    admin = make_topics(address, namespace)
    produce(address, namespace, 0, 1000)
    state = tmp_path / "state"
    with running(application(tmp_path, namespace), "--bootstrap-servers", address, "--state-dir", state) as run:
        run.wait_for(lambda event: event["event"] == "caught-up")
        shown = subprocess.run(
            [str(Path(sys.executable).with_name("streamsapp")), "status", "--state-dir", state],
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown.stdout.startswith(f"{namespace} RUNNING  1 of 1 ready, tasks {2 * PARTITIONS}, lag 0\n")
        assert "tasks 0_0 0_1 with by-user\n" in shown.stdout
        os.kill(last_instance(run)["pid"], signal.SIGKILL)
        run.wait_for(lambda event: event["event"] == "restart")
        produce(address, namespace, 1000, 2500)
        run.wait_for(lambda event: processed(event, f"{namespace}-orders", 2500) and event["application"]["lag"] == 0)
        run.process.send_signal(signal.SIGINT)
        assert run.end() == 0
    results_are(admin, namespace, 2500)
    assert "signal SIGKILL" in run.of("crash")["text"]
    assert run.of("stopping")["text"].startswith("stopping (SIGINT")
    assert len(run.pids()) == 2
    assert nothing_is_left_of(run.pids())
    assert {each.name for each in (state / f"{namespace}-0").glob("instance.log*")} == {
        "instance.log",
        "instance.log.1",
    }


def last_instance(run: Run) -> dict[str, Any]:
    return next(event for event in reversed(run.events) if "instances" in event)["instances"][0]


def processed(event: dict[str, Any], topic: str, count: int) -> bool:
    return any(row["topic"] == topic and row["committed"] == count for row in event.get("topics", ()))


def test_its_own_broker_gets_the_missing_topics_and_dies_with_a_killed_run(namespace, tmp_path):
    with running(application(tmp_path, namespace), "--state-dir", tmp_path / "state") as run:
        run.wait_for(lambda event: event["event"] == "topic" and event["topic"] == f"{namespace}-letters")
        run.wait_for(lambda event: "instances" in event and event["instances"][0]["url"] is not None)
        run.process.kill()
        run.process.wait()
        assert nothing_is_left_of(run.pids())
    made = {event["topic"]: event["text"] for event in run.events if event["event"] == "topic"}
    assert set(made) == {f"{namespace}-{name}" for name in ("orders", "users", "letters")}
    assert f"streamsapp produce {namespace}-orders" in made[f"{namespace}-orders"]
    assert len(run.pids()) == 2


def test_a_second_signal_kills(broker, namespace, tmp_path):
    address, state = broker.bootstrap_servers, tmp_path / "state"
    make_topics(address, namespace)
    with running(application(tmp_path, namespace), "--bootstrap-servers", address, "--state-dir", state) as run:
        run.wait_for(lambda event: "instances" in event and event["instances"][0]["url"] is not None)
        # Stopped, it can't close: only the second signal's SIGKILL ends it.
        os.kill(last_instance(run)["pid"], signal.SIGSTOP)
        run.process.terminate()
        run.wait_for(lambda event: event["event"] == "stopping")
        run.process.terminate()
        assert run.end() == 1
    assert run.of("ended")["end"] == "KILLED"
    assert nothing_is_left_of(run.pids())


def test_a_broker_that_is_away_is_named_and_waited_for_until_ctrl_c(namespace, tmp_path):
    with running(application(tmp_path, namespace), "--bootstrap-servers", "127.0.0.1:1") as run:
        away = run.wait_for(lambda event: event["event"] == "broker-away")
        run.process.send_signal(signal.SIGINT)
        assert run.end() == 0
        assert run.process.stderr.read() == b""
    assert "no connection to Kafka at 127.0.0.1:1: connection refused" in away["text"]


def test_all_mistakes_are_listed_before_anything_is_started(tmp_path, namespace):
    file = application(tmp_path, namespace)
    document = yaml.safe_load(file.read_text())
    document["spec"]["suspend"] = True
    document["spec"]["topology"]["steps"][1]["keyBy"] = "substring(_key, 1"
    file.write_text(yaml.safe_dump(document))
    with running(file) as run:
        assert run.end() == 64
    assert [event["path"] for event in run.events[:-1]] == ["spec.suspend", "spec.topology.steps[1].keyBy"]
    assert run.events[-1]["code"] == 64
