"""A client's standbys: they follow the group, make way for active tasks, and harm nobody by failing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from state_kit import memory_folder
from waiting import eventually

from streams_runtime.errors import BrokerNotAvailableException, ProcessorStateException
from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.restore.restore_listener import SuspendReason
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.state.database.damaged_files import DAMAGED
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.states import TaskState
from streams_runtime.tasks import standbys as standbys_module
from streams_runtime.tasks.standby_placement import Wanted
from streams_runtime.tasks.standbys import StandbyTasks
from streams_runtime.topology.plan import SubTopology, TaskId, Topology
from streams_runtime.topology.store_specs import StoreSpec

TOPOLOGY = Topology(
    "app", (SubTopology(0, (), ("orders",), (), (), (StoreSpec("s", "key-value", "log", False, "s"),)),)
)
T0, T1 = TaskId(0, 0), TaskId(0, 1)


def group(**partitions: int) -> list[GroupMember]:
    """Members by instance, each with one partition, or none (-1)."""
    return [
        GroupMember(
            f"id-{name}", f"{name}-1", f"{name}|h:1|1", "/h", (TopicPartition("orders", has),) if has >= 0 else ()
        )
        for name, has in partitions.items()
    ]


@dataclass
class FakeUpdater:
    """Follows nothing; says what it was told, and why what it let go of went away."""

    reason: Any
    followed: set[TopicPartition] = field(default_factory=set)
    reasons: list[SuspendReason] = field(default_factory=list)
    open_at_removal: list[bool] = field(default_factory=list)
    stores: dict[TopicPartition, Any] = field(default_factory=dict)
    failure: Exception | None = None
    stopped: bool = False

    def start(self) -> None: ...

    def add(self, stores: Mapping[StateRestorer, Any]) -> None:
        self.followed |= {each.partition for each in stores}
        self.stores |= {each.partition: each.store for each in stores}

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        for each in partitions:
            self.followed.discard(each)
            self.open_at_removal.append(self.stores[each].is_open)
            self.reasons.append(self.reason(TaskId(0, each.partition)))

    def completed(self) -> set[TopicPartition]:
        if self.failure is not None:
            raise self.failure
        return set()

    def stop(self) -> None:
        self.stopped = True


@dataclass
class Bench:
    """Standbys of instance `b` of a group that a test decides."""

    directory: StateDirectory
    members: list[GroupMember] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: {"orders": 2})
    replicas: int = 1
    tag_keys: tuple[str, ...] = ()
    away: bool = False
    looks: int = 0
    renewed: Mapping[str, str] = field(default_factory=dict)
    updaters: list[FakeUpdater] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    """The looks at the group at which changelogs were looked after."""

    def __post_init__(self) -> None:
        watch: Any = SimpleNamespace(
            gone=lambda: self.watched.append(self.looks),
            renewed=lambda: self.renewed,
            forget=lambda: setattr(self, "renewed", {}),
        )
        self.tasks = StandbyTasks(
            "b",
            Wanted(self.replicas, self.tag_keys),
            TOPOLOGY,
            self.directory,
            self._ask,
            lambda: self.counts,
            self._make,
            watch,
        )

    def look(self) -> None:
        """Let the thread look at the group once more, and be through with what follows from it."""
        looks = self.looks
        self.tasks.let_go([])
        eventually(lambda: self.looks >= looks + 2 or self.tasks.let_go([]))

    def open(self) -> list[TaskId]:
        return sorted(self.tasks.tasks)

    def _ask(self) -> list[GroupMember]:
        self.looks += 1
        if self.away:
            raise BrokerNotAvailableException("no answer from the broker at b:1")
        return self.members

    def _make(self, reason: Any) -> Any:
        self.updaters.append(FakeUpdater(reason))
        return self.updaters[-1]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with memory_folder() as folder:
        made = Bench(StateDirectory(folder, "app", "test"), group(a=0, b=1))
        yield made
        made.tasks.stop()


def test_what_falls_to_this_instance_is_opened_and_followed_and_closed_when_it_falls_to_another(bench: Bench) -> None:
    bench.tasks.start()
    eventually(lambda: bench.open() == [T0])
    (updater,) = bench.updaters
    assert updater.followed == {TopicPartition("log", 0)}
    task = bench.tasks.tasks[T0]
    assert (task.state, task.inputs) == (TaskState.RUNNING, frozenset())
    bench.members = group(a=0, aa=1, b=-1)
    bench.look()
    assert (updater.reasons, updater.open_at_removal) == ([SuspendReason.MIGRATED], [True])
    assert bench.open() == [T1]
    assert task.state is TaskState.CLOSED


def test_a_standby_is_in_another_zone_than_its_task_and_a_warning_names_the_tags_for_which_there_are_too_few_instances(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def in_zones(**zones: str) -> list[GroupMember]:
        members = group(a=0, aa=-1, b=1)
        ids = {
            each.member_id: f"{name}|h:1|{zone}|1" for each, (name, zone) in zip(members, zones.items(), strict=True)
        }
        return [replace(each, client_id=ids[each.member_id]) for each in members]

    with memory_folder() as folder:
        bench = Bench(StateDirectory(folder, "app", "test"), replicas=1, tag_keys=("zone", "rack"))
        bench.members = in_zones(a="zone=1", aa="zone=2", b="zone=2,rack=x")
        bench.tasks.start()
        try:
            bench.look()
            # Without tags the group would give a's task to aa, should a leave; both are allowed, b's is not here.
            assert (bench.open(), caplog.text) == ([], "")
            bench.members = in_zones(a="zone=1", aa="zone=1", b="zone=2,rack=x")
            bench.look()
            assert (bench.open(), caplog.text) == ([T0], "")
            bench.members = in_zones(a="zone=1", aa="zone=1", b="zone=1,rack=x")
            bench.look()
            bench.look()
            (said,) = [each.getMessage() for each in caplog.records]
            assert (
                "could not be kept apart from their tasks and from each other by zone (of 2 tasks; there is 1)" in said
            )
            assert bench.open() == []
        finally:
            bench.tasks.stop()


def test_a_task_that_becomes_active_here_finds_its_standby_closed_and_its_contents_in_place(bench: Bench) -> None:
    bench.tasks.start()
    eventually(lambda: bench.open() == [T0])
    store = bench.tasks.tasks[T0].stores["s"]
    bench.members = group(b=1)  # the group is giving it to us; the thread has not got it yet
    bench.look()
    assert bench.open() == [T0]
    bench.tasks.promote([T0])
    assert (bench.open(), store.is_open) == ([], False)
    assert bench.updaters[0].reasons == [SuspendReason.PROMOTED]
    assert store.folder.is_dir()
    # The group may say for a while that the other one has it.
    bench.members = group(a=0, b=1)
    bench.look()
    assert bench.open() == []
    bench.tasks.let_go([T0])
    eventually(lambda: bench.open() == [T0])


def test_a_task_that_is_to_move_here_is_kept_warm_without_replicas_and_asked_for_from_when_all_have_joined() -> None:
    announced = GroupMember("id", None, "b|h:2|+1", "/h", ())
    owner = replace(*group(a=0), assignment=(TopicPartition("orders", 0), TopicPartition("orders", 1)))
    joined = group(b=-1)
    with memory_folder() as folder:
        bench = Bench(StateDirectory(folder, "app", "test"), [owner], replicas=0)
        bench.tasks.start()
        try:
            bench.look()
            assert (bench.open(), bench.updaters) == ([], [])
            bench.members = [owner, announced]
            bench.look()
            assert (bench.open(), bench.tasks.awaits_a_move) == ([T1], False)
            bench.members = [owner]
            bench.look()
            assert bench.open() == [], "it is announced no more"
            bench.members = [owner, announced]
            bench.look()
            store = bench.tasks.tasks[T1].stores["s"]
            bench.members = [owner, announced, *joined]
            bench.look()
            assert (bench.open(), bench.tasks.awaits_a_move) == ([T1], True)
            bench.tasks.promote([T1])
            assert (bench.open(), bench.tasks.awaits_a_move, store.is_open) == ([], False, False)
        finally:
            bench.tasks.stop()


def test_a_move_that_does_not_come_is_not_asked_for_for_ever(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = replace(*group(a=0), assignment=(TopicPartition("orders", 0), TopicPartition("orders", 1)))
    bench.members = [owner, *group(b=-1)]  # the group has counted it in, and `a` does not let go
    bench.tasks.start()
    eventually(lambda: bench.tasks.awaits_a_move)
    monkeypatch.setattr(standbys_module, "_MOVE_SECONDS", 0.0)
    assert not bench.tasks.awaits_a_move
    assert T1 in bench.open()


def test_a_changelog_that_was_made_anew_is_followed_by_an_updater_that_knows_nothing_of_the_old_one(
    bench: Bench,
) -> None:
    bench.tasks.start()
    eventually(lambda: bench.open() == [T0])
    bench.renewed = {"log": "second"}
    eventually(lambda: len(bench.updaters) == 2 and bench.open() == [T0])
    first, second = bench.updaters
    assert (first.stopped, first.followed) == (True, set())
    assert (second.stopped, second.followed) == (False, {TopicPartition("log", 0)})


def test_nothing_is_opened_before_the_topics_are_known_and_an_outage_leaves_all_as_it_is(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.counts = {}
    bench.tasks.start()
    bench.tasks.let_go([])
    assert bench.looks == 0
    bench.counts = {"orders": 2}
    bench.look()
    assert bench.open() == [T0]
    bench.away = True
    bench.look()
    assert bench.open() == [T0]
    assert "no answer from the broker at b:1. Standbys stay as they are" in caplog.text


def test_what_ends_the_updater_is_told_and_standbys_are_opened_again_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(standbys_module, "_AGAIN_SECONDS", 0.01)
    bench.tasks.start()
    eventually(lambda: bench.open() == [T0])
    bench.updaters[0].failure = ProcessorStateException("disk full")
    bench.tasks.let_go([])
    eventually(lambda: (len(bench.updaters) == 2 and bench.open() == [T0]) or bench.tasks.let_go([]))
    assert bench.updaters[0].stopped
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert said.endswith("the tasks that are active here go on: ProcessorStateException: disk full")


def test_changelogs_are_looked_after_from_when_they_are_followed(bench: Bench) -> None:
    """One that is made anew before the brokers have been asked for it is taken for the one that is followed."""
    bench.tasks.start()
    eventually(lambda: bench.watched)
    assert (bench.watched[0], bench.open()) == (1, [T0])


def test_a_damaged_standby_is_set_aside_and_opened_anew(bench: Bench) -> None:
    bench.tasks.start()
    eventually(lambda: bench.open() == [T0])
    folder = bench.tasks.tasks[T0].stores["s"].folder
    DAMAGED.note(folder, "Corruption: block")
    bench.look()
    assert (bench.open(), bench.directory.quarantined) == ([T0], 1)
    assert bench.updaters[0].followed == {TopicPartition("log", 0)}


def test_standbys_that_nobody_can_keep_are_told_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.members = group(b=0)
    bench.tasks.start()
    bench.look()
    bench.look()
    assert caplog.text.count("2 of 2 standbys have no instance to be kept on") == 1
    bench.members = group(a=0, b=1)
    bench.look()
    assert caplog.text.count("have no instance") == 1


def test_stopping_closes_all_for_good_and_may_be_repeated(bench: Bench) -> None:
    bench.tasks.start()
    eventually(lambda: bench.open() == [T0])
    task = bench.tasks.tasks[T0]
    for _ in range(2):
        bench.tasks.stop()
        assert (bench.open(), task.state, bench.updaters[0].stopped) == ([], TaskState.CLOSED, True)
    bench.tasks.let_go([T0])
    bench.tasks.promote([T1])
    assert bench.open() == []


def test_stopping_what_was_never_started_is_no_error(bench: Bench) -> None:
    bench.tasks.stop()


@pytest.mark.parametrize("replicas", [0, 1])
def test_a_group_of_which_nothing_is_kept_here_is_asked_more_seldom(replicas: int) -> None:
    owner = replace(*group(a=0), assignment=(TopicPartition("orders", 0), TopicPartition("orders", 1)))
    kept = standbys_module._LOOK_SECONDS if replicas else standbys_module._QUIET_SECONDS
    with memory_folder() as folder:
        bench = Bench(StateDirectory(folder, "app", "test"), [owner], replicas=replicas)
        bench.tasks.start()
        try:
            bench.look()
            assert (bench.open(), bench.tasks._seconds_to_the_next_look) == ([], kept)
            bench.members = [owner, GroupMember("id", None, "b|h:2|+1", "/h", ())]
            bench.look()
            assert (bench.open(), bench.tasks._seconds_to_the_next_look) == ([T1], standbys_module._MOVE_LOOK_SECONDS)
            bench.members = [owner]
            bench.look()
            assert (bench.open(), bench.tasks._seconds_to_the_next_look) == ([], kept)
        finally:
            bench.tasks.stop()


def test_an_end_does_not_wait_for_brokers_that_stand_still(bench: Bench) -> None:
    asked, answer = threading.Event(), threading.Event()

    def stand_still() -> list[GroupMember]:
        asked.set()
        answer.wait(60)
        return bench.members

    bench.tasks._members = stand_still
    bench.tasks.start()
    assert asked.wait(10)
    began = time.monotonic()
    bench.tasks.stop()
    assert time.monotonic() - began < standbys_module._END_SECONDS / 2
    answer.set()
    eventually(lambda: not bench.tasks._thread.is_alive())
    assert bench.open() == []
