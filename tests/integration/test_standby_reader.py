"""StandbyReader on a real broker: what it follows, up to where, and what makes it begin again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clients import delete_records, make_topics, send
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore import standby_reader as standby_module
from streams_runtime.restore.restore_listener import SuspendReason
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.restore.standby_progress import StandbyProgress
from streams_runtime.restore.standby_reader import StandbyReader
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store import Updates
from streams_runtime.tasks.standby import StandbyTask
from streams_runtime.topology.plan import SubTopology, TaskId
from streams_runtime.topology.store_specs import StoreSpec

pytestmark = pytest.mark.integration


class Bench:
    """Standby tasks of one store, one for each partition of a topic, over one reader."""

    def __init__(
        self, bootstrap: str, topic: str, folder: Path, source: bool = False, exactly_once: bool = False
    ) -> None:
        properties = client_properties(bootstrap, {}, exactly_once)
        self.bootstrap, self.topic, self.group = bootstrap, topic, f"{topic}-group"
        self.sub = SubTopology(0, (), (topic,), (), (), (StoreSpec("s", "key-value", topic, source, "s"),))
        self.directory = StateDirectory(folder, "app", "test")
        self.admin = Admin(properties)
        self.consumer = ChangelogConsumer(properties, "standby-test")
        self.progress = StandbyProgress()
        self.restoring = False
        self.reader = StandbyReader(
            self.consumer,
            self.admin,
            self.group,
            self.progress,
            lambda: self.restoring,
            lambda task: SuspendReason.PROMOTED if task.partition else SuspendReason.MIGRATED,
        )
        self.tasks: dict[TopicPartition, StandbyTask] = {}

    def open(self, partition: int = 0, fill: Callable[[StateRestorer], None] = lambda _: None) -> None:
        """Follow this partition; `fill` puts something into the store before."""
        task = StandbyTask(TaskId(0, partition), self.sub)
        (restorer,) = task.open(self.directory)
        fill(restorer)
        self.tasks[restorer.partition] = task
        self.reader.register(restorer)

    def turn_until(self, condition: Callable[[], bool], what: str) -> None:
        def turned() -> bool:
            assert self.reader.restore(self.tasks) == set()
            return condition()

        eventually(turned, what)

    def until(self, offset: int, partition: int = 0) -> None:
        self.turn_until(lambda: self.offset(partition) == offset, f"the store is at {offset}")

    def offset(self, partition: int = 0) -> int | None:
        return self._store(partition).offset()

    def contents(self, partition: int = 0) -> dict[bytes, bytes]:
        return dict(self._store(partition).scan(None, None))

    def row(self, partition: int = 0) -> dict[str, Any]:
        return self.progress.snapshot()[TopicPartition(self.topic, partition)]

    def commit(self, offset: int) -> None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.group})
        consumer.commit(offsets=[ConfluentTopicPartition(self.topic, 0, offset)], asynchronous=False)
        consumer.close()

    def close(self) -> None:
        self.reader.clear()
        self.consumer.close()
        self.admin.close()
        for task in self.tasks.values():
            task.close()

    def _store(self, partition: int) -> Any:
        return self.tasks[TopicPartition(self.topic, partition)].stores["s"]


@pytest.fixture
def bench(broker: Any, namespace: str, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []
    make_topics(broker.bootstrap_servers, **{namespace: 2})

    def make(**how: bool) -> Bench:
        made.append(Bench(broker.bootstrap_servers, namespace, tmp_path, **how))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_standbys_follow_their_own_changelogs_and_wait_while_active_tasks_are_being_restored(
    bench: Callable[..., Bench], namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka Streams' shouldOnlyRestoreStandbyChangelogInUpdateStandbyState."""
    caplog.set_level(logging.INFO, "streams_runtime")
    it = bench()
    for number in range(2):
        send(it.bootstrap, namespace, [(f"k{i}", b"1") for i in range(10)], number)
    it.open(0)
    assert it.reader.busy
    it.until(10)
    assert it.contents() == {b"k%d" % i: b"1" for i in range(10)}
    assert it.consumer.position(TopicPartition(namespace, 1)) is None

    it.restoring = True
    send(it.bootstrap, namespace, [("k0", b"2"), ("k1", None)], 0)
    it.open(1)
    assert it.reader.restore(it.tasks) == set()
    assert [it.consumer.position(each) for each in it.tasks] == [None, None]
    assert (it.offset(0), it.offset(1)) == (10, None)
    it.restoring = False
    it.until(12)
    it.until(10, 1)
    assert it.contents() == {b"k%d" % i: b"1" for i in range(2, 10)} | {b"k0": b"2"}
    assert (it.row()["lag"], it.progress.updates.total) == (0, 22)

    it.reader.unregister(list(it.tasks))
    assert not it.reader.busy
    assert it.progress.snapshot() == {}
    gone = [record for record in caplog.records if record.getMessage() == "standby suspended"]
    told = [(each.partition, each.position, each.end, each.reason) for each in gone]  # type: ignore[attr-defined]
    assert told == [(f"{namespace}-0", 12, 12, "MIGRATED"), (f"{namespace}-1", 10, 10, "PROMOTED")]


def test_a_users_topic_is_followed_up_to_what_the_application_has_committed(
    bench: Callable[..., Bench], namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka Streams' shouldRestoreToLimitInStandbyState."""
    monkeypatch.setattr(standby_module, "_ASK_SECONDS", 0.0)
    it = bench(source=True)
    send(it.bootstrap, namespace, [(f"k{i}", b"1") for i in range(10)], 0)
    it.open()
    for _ in range(3):
        it.reader.restore(it.tasks)
    assert (it.contents(), it.row()["lag"]) == ({}, 0)
    it.commit(4)
    it.until(4)
    assert sorted(it.contents()) == [b"k0", b"k1", b"k2", b"k3"]
    it.commit(8)
    it.until(8)
    assert len(it.contents()) == 8
    send(it.bootstrap, namespace, [("k0", b"2")], 0)
    it.commit(11)
    it.until(11)
    assert it.contents() == {b"k%d" % i: b"1" for i in range(1, 10)} | {b"k0": b"2"}


def test_a_standby_without_a_checkpoint_or_with_one_that_the_log_does_not_have_is_wiped(
    bench: Callable[..., Bench], namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka Streams' shouldWipeOutStandbyStateDirectoryIfCheckpointIsMissing, and a changelog that is shorter."""
    it = bench()
    for number in range(2):
        send(it.bootstrap, namespace, [("a", b"1")], number)
    it.open(0, lambda restorer: restorer.store.write(Updates([b"stale"], [b"x"], [1]), None))
    it.open(1, lambda restorer: restorer.store.write(Updates([b"stale"], [b"x"], [1]), 99))
    it.until(1)
    it.until(1, 1)
    assert it.contents(0) == it.contents(1) == {b"a": b"1"}
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "it ends at 1, before the checkpoint 99: it was truncated or made anew. The store is wiped" in said


def test_a_standby_whose_log_was_deleted_under_it_begins_again_and_no_other_does(
    bench: Callable[..., Bench], namespace: str
) -> None:
    it = bench()
    for number in range(2):
        send(it.bootstrap, namespace, [(f"k{i}", b"1") for i in range(10)], number)
        it.open(number)
    it.until(10)
    it.until(10, 1)
    # While it is held up, the log goes on and loses what the standby has not read.
    it.restoring = True
    it.reader.restore(it.tasks)
    send(it.bootstrap, namespace, [(f"new{i}", b"2") for i in range(5)], 0)
    delete_records(it.admin, {TopicPartition(namespace, 0): 13})
    it.restoring = False
    it.until(15)
    assert sorted(it.contents()) == [b"new3", b"new4"]
    assert len(it.contents(1)) == 10
    assert it.progress.updates.total == 22


def test_under_exactly_once_a_standby_stops_before_an_open_transaction_and_passes_aborted_ones(
    bench: Callable[..., Bench], namespace: str
) -> None:
    it = bench(exactly_once=True)
    producer = Producer({"bootstrap.servers": it.bootstrap, "transactional.id": namespace})
    producer.init_transactions(30)
    it.open()
    for number, commits in enumerate([True, False]):
        producer.begin_transaction()
        producer.produce(namespace, b"%d" % number, b"a", 0)
        producer.flush()
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    it.until(4)
    producer.begin_transaction()
    producer.produce(namespace, b"9", b"a", 0)
    producer.flush()
    it.turn_until(lambda: it.row()["lag"] == 1, "the open transaction is seen")
    assert (it.offset(), it.contents()) == (4, {b"a": b"0"})
    producer.commit_transaction(30)
    it.until(6)
    assert it.contents() == {b"a": b"9"}
