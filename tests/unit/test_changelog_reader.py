"""StoreChangelogReader over played brokers: what is registered, asked again, read, let go, and told."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from changelog_records import Change
from clients import client
from orders import topology
from restore_heard import Heard
from state_kit import contents, key_value_store, memory_folder
from waiting import eventually

from streams_runtime.errors import IllegalStateException
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore import state_updaters
from streams_runtime.restore.changelog_reader import ChangelogState, StoreChangelogReader
from streams_runtime.restore.restore_listener import SuspendReason
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.restore.standby_progress import StandbyProgress
from streams_runtime.restore.standby_reader import StandbyReader
from streams_runtime.state.store import KeyValueStore
from streams_runtime.topology.plan import TaskId

TASKS: Any = {}


@dataclass
class Brokers:
    """Changelogs by their records; one that is not there has no leader, or is not made yet."""

    logs: dict[TopicPartition, list[Change]] = field(default_factory=dict)
    without_start: set[TopicPartition] = field(default_factory=set)
    asked: list[set[TopicPartition]] = field(default_factory=list)

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: 0 for each in partitions if each in self.logs and each not in self.without_start}

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        del read_committed
        self.asked.append(set(partitions))
        return {each: len(self.logs[each]) for each in partitions if each in self.logs}

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        del group, partitions
        return {}

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        return {each.topic: "id" for each in self.logs if each.topic in names}


@dataclass
class Consumer:
    """Hands out what is left of each log that it was given, a record of each at a time."""

    brokers: Brokers
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    unsubscribed: int = 0

    def add(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        self.positions |= {each: at or 0 for each, at in offsets.items()}

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        for each in partitions:
            self.positions.pop(each, None)

    def unsubscribe(self) -> None:
        self.unsubscribed += 1
        self.positions.clear()

    def position(self, partition: TopicPartition) -> int | None:
        return self.positions.get(partition)

    def close(self) -> None:
        self.unsubscribe()

    def poll(self, limit: int, wait: float) -> dict[TopicPartition, list[Change]]:
        del limit
        self.waits.append(wait)
        found = {each: self.brokers.logs[each][at : at + 1] for each, at in self.positions.items()}
        for each, records in found.items():
            self.positions[each] += len(records)
        return {each: records for each, records in found.items() if records}


class Stage:
    """A reader with two stores, `a` and `b`, of a task."""

    def __init__(self, folder: Path, stores: tuple[KeyValueStore, KeyValueStore]) -> None:
        self.now, self.heard, self.brokers = 100.0, Heard(), Brokers()
        self.consumer = Consumer(self.brokers)
        self.reader = StoreChangelogReader(
            cast("ChangelogConsumer", self.consumer),
            self.brokers,
            "app",
            self.heard,
            poll_seconds=0.25,
            clock=lambda: self.now,
        )
        self.a, self.b = (StateRestorer(TaskId(0, 0), store) for store in stores)
        self.folder = folder

    def has(self, restorer: StateRestorer, *keys: bytes) -> None:
        """The brokers have this changelog, with these keys."""
        self.brokers.logs[restorer.partition] = [Change(number, key, b"1") for number, key in enumerate(keys)]

    def restore(self) -> set[TopicPartition]:
        return self.reader.restore(TASKS)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with memory_folder() as folder, key_value_store(folder, "a") as a, key_value_store(folder, "b") as b:
        yield Stage(folder, (a, b))


def test_a_changelog_that_the_brokers_do_not_name_yet_is_asked_for_again_and_then_restored(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """A topic that was just made, or a partition whose leader is being chosen: it may hold all of the store."""
    late, there = stage.a.partition, stage.b.partition
    stage.has(stage.b, b"x")
    stage.reader.register(stage.a)
    stage.reader.register(stage.b)
    with caplog.at_level(logging.WARNING):
        assert stage.restore() == {there}, "others do not wait for it"
    assert (stage.reader.busy, stage.reader.loading) == (True, False)
    assert stage.reader.state(late) is ChangelogState.REGISTERED
    assert stage.restore() == set()
    assert stage.brokers.asked == [{late, there}], "asked again after a second, not in each round"
    for _ in range(2):
        stage.now += 1.0
        assert stage.restore() == set()
    assert stage.brokers.asked[1:] == [{late}] * 2
    assert len(caplog.records) == 1, "said once"
    assert "the brokers do not name the changelog app-a-changelog-0" in caplog.text
    stage.has(stage.a, b"x", b"y")
    stage.now += 1.0
    assert stage.restore() == set()
    assert stage.restore() == {late}
    assert contents(cast("KeyValueStore", stage.a.store)) == {b"x": b"1", b"y": b"1"}
    assert not stage.reader.busy


def test_a_changelog_without_a_known_beginning_is_not_known_yet(stage: Stage) -> None:
    stage.has(stage.a, b"x")
    stage.brokers.without_start.add(stage.a.partition)
    stage.reader.register(stage.a)
    assert stage.restore() == set()
    assert stage.reader.state(stage.a.partition) is ChangelogState.REGISTERED
    stage.brokers.without_start.clear()
    stage.now += 1.0
    assert stage.restore() == {stage.a.partition}


def test_one_that_is_registered_later_is_looked_for_at_once(stage: Stage) -> None:
    stage.reader.register(stage.a)
    stage.restore()
    stage.has(stage.b)
    stage.reader.register(stage.b)
    assert stage.restore() == {stage.b.partition}


def test_one_that_is_waited_for_can_be_taken_away(stage: Stage) -> None:
    stage.reader.register(stage.a)
    stage.restore()
    stage.reader.unregister([stage.a.partition])
    assert not stage.reader.busy
    assert stage.heard.calls == []


def test_rounds_with_nothing_to_read_wait_for_poll_ms_and_no_longer(stage: Stage) -> None:
    stage.reader.register(stage.a)
    stage.restore()
    assert stage.consumer.waits == [0.25]
    stage.has(stage.a, b"x")
    stage.now += 1.0
    stage.restore()
    assert stage.consumer.waits == [0.25, 0.25]


def test_poll_ms_is_a_setting_of_the_resource(stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A client's reader of changelogs waits as long as spec.processing.pollDuration says."""
    monkeypatch.setattr(state_updaters, "ChangelogConsumer", lambda *_: stage.consumer)
    processing = {"pollDuration": "350ms", "streamThreads": 2}  # which share the cores: none begins bulk workers
    with client("127.0.0.1:9", "app", topology("app"), tmp_path, processing=processing) as made:
        monkeypatch.setattr(made.context, "updaters", replace(made.context.updaters, offsets=stage.brokers))
        updater = made.context.make_updater("updater")
        updater.start()
        updater.add({stage.a: cast("Any", None)})
        eventually(lambda: updater.completed() or len(stage.consumer.waits) >= 2)
        updater.stop()
    assert set(stage.consumer.waits) == {0.35}


def test_a_partition_is_registered_once(stage: Stage) -> None:
    """As in Kafka Streams: two stores that follow one changelog are a mistake of the caller's."""
    stage.has(stage.a, b"x")
    stage.reader.register(stage.a)
    other = StateRestorer(TaskId(0, 0), stage.a.store)
    with pytest.raises(IllegalStateException, match=r"already .* app-a-changelog-0"):
        stage.reader.register(other)
    assert stage.restore() == {stage.a.partition}
    assert (stage.a.position, other.position) == (1, 0)
    with pytest.raises(IllegalStateException):
        stage.reader.register(other)  # complete, and not let go of yet
    stage.reader.unregister([stage.a.partition])
    stage.reader.register(other)
    assert stage.restore() == {stage.a.partition}


def test_a_standby_is_registered_once_too(stage: Stage) -> None:
    reader = StandbyReader(
        cast("ChangelogConsumer", stage.consumer),
        stage.brokers,
        "app",
        cast("Any", None),
        lambda: False,
        cast("Any", None),
    )
    reader.register(stage.a)
    with pytest.raises(IllegalStateException, match=r"already .* app-a-changelog-0"):
        reader.register(StateRestorer(TaskId(0, 0), stage.a.store))


class SlowConsumer(Consumer):
    """Its first answer brings nothing, and until then it does not know where a log ends."""

    def end(self, partition: TopicPartition) -> int | None:
        return len(self.brokers.logs[partition]) if len(self.waits) > 1 else None

    def poll(self, limit: int, wait: float) -> dict[TopicPartition, list[Change]]:
        return super().poll(limit, wait) if self.waits else (self.waits.append(wait) or {})


def test_a_standby_that_has_read_nothing_yet_lags_all_of_its_changelog(stage: Stage) -> None:
    stage.has(stage.a, b"x", b"y")
    progress = StandbyProgress()
    consumer = cast("ChangelogConsumer", SlowConsumer(stage.brokers))
    reader = StandbyReader(consumer, stage.brokers, "app", progress, lambda: False, lambda _: SuspendReason.MIGRATED)
    reader.register(stage.a)
    lags = []
    for _ in range(3):
        reader.restore(TASKS)
        lags += [each["lag"] for each in progress.snapshot().values()]
    assert lags == [2, 1, 0]


def test_nothing_left_to_restore_is_when_the_consumer_lets_go_of_all_topics(stage: Stage) -> None:
    stage.has(stage.a)
    stage.has(stage.b, b"x", b"y")
    stage.reader.register(stage.a)
    assert (stage.restore(), stage.consumer.unsubscribed) == ({stage.a.partition}, 1), "complete at once"
    stage.reader.register(stage.b)
    assert (stage.restore(), stage.consumer.unsubscribed) == (set(), 1)
    stage.reader.unregister([stage.a.partition])
    assert stage.consumer.unsubscribed == 1, "the other one is being read"
    assert stage.consumer.positions == {stage.b.partition: 1}
    assert (stage.restore(), stage.consumer.unsubscribed) == ({stage.b.partition}, 2)
    assert stage.consumer.positions == {}


def test_the_last_one_that_is_taken_away_lets_go_of_all_topics(stage: Stage) -> None:
    stage.has(stage.a, b"x", b"y")
    stage.reader.register(stage.a)
    stage.restore()
    assert stage.consumer.unsubscribed == 0
    stage.reader.unregister([stage.a.partition])
    assert (stage.consumer.unsubscribed, stage.consumer.positions) == (1, {})
    assert [call[0] for call in stage.heard.calls] == ["start", "batch", "suspended"]
