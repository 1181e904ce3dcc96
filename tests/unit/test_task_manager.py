"""A thread's tasks follow its partitions: opened when complete, read from where the group is, closed in order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from state_kit import memory_folder

from streams_runtime.errors import BrokerNotAvailableException, ProcessorStateException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.state.database.damaged_files import DAMAGED
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store import KeyValueStore
from streams_runtime.states import TaskState
from streams_runtime.tasks.task_manager import TaskManager
from streams_runtime.topology.plan import SubTopology, TaskId, Topology
from streams_runtime.topology.store_specs import StoreSpec

COUNTS = {"orders": 2, "users": 2, "by-user": 2}
TOPOLOGY = Topology(
    "app",
    (
        SubTopology(0, (), ("orders", "users"), (), (), (StoreSpec("users", "key-value", "users", True, "users"),)),
        SubTopology(
            1, (), ("by-user",), (), (), (StoreSpec("totals", "key-value", "app-totals-changelog", False, "totals"),)
        ),
    ),
)


def partitions(*names: str) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition.parse(name) for name in names)


@dataclass
class FakeUpdater:
    """Restores nothing by itself: a test says what is complete."""

    adding: list[TopicPartition] = field(default_factory=list)
    removed: list[TopicPartition] = field(default_factory=list)
    done: set[TopicPartition] = field(default_factory=set)
    open_stores_at_removal: list[bool] = field(default_factory=list)
    stores: dict[TopicPartition, KeyValueStore] = field(default_factory=dict)
    failure: Exception | None = None

    def add(self, stores: Mapping[StateRestorer, Any]) -> None:
        self.adding += [each.partition for each in stores]
        self.stores |= {each.partition: each.store for each in stores}

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        self.removed += partitions
        self.open_stores_at_removal += [self.stores[each].is_open for each in partitions]

    def completed(self) -> set[TopicPartition]:
        if self.failure is not None:
            raise self.failure
        done, self.done = self.done, set()
        return done


@dataclass
class FakeOffsets:
    """Where partitions begin and what the group has committed."""

    committed: dict[TopicPartition, int] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    away: bool = False

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        if self.away:
            raise BrokerNotAvailableException("away")
        return {each: self.starts.get(each, 0) for each in partitions}

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        return {each: self.ends.get(each, 1000) for each in partitions}

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return dict.fromkeys(times)

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        assert group == "app"
        return {each: offset for each, offset in self.committed.items() if each in partitions}

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        return {name: self.ids.get(name, f"{name}-id") for name in names}


@dataclass
class Bench:
    """A manager and what it stands on."""

    manager: TaskManager
    updater: FakeUpdater
    offsets: FakeOffsets
    directory: StateDirectory

    def assign(self, *names: str) -> None:
        self.manager.assigned(partitions(*names))
        self.manager.open_new(COUNTS)

    def restore(self, *changelogs: str) -> dict[TopicPartition, int]:
        self.updater.done |= partitions(*changelogs)
        return dict(self.manager.restored("app").next)

    def states(self) -> dict[str, TaskState]:
        return {str(task_id): task.state for task_id, task in sorted(self.manager.tasks.items())}


@pytest.fixture
def bench() -> Iterator[Bench]:
    updater, offsets = FakeUpdater(), FakeOffsets()
    with memory_folder() as folder:
        directory = StateDirectory(folder, "app", "test")
        manager = TaskManager(TOPOLOGY, directory, updater, offsets)  # type: ignore[arg-type]
        yield Bench(manager, updater, offsets, directory)
        manager.close()


def test_a_task_is_opened_once_all_of_its_inputs_have_come(bench: Bench) -> None:
    bench.assign("orders-0", "orders-1", "users-1")
    assert bench.states() == {"0_1": TaskState.RESTORING}
    bench.assign("users-0", "by-user-0")
    assert bench.states() == dict.fromkeys(["0_0", "0_1", "1_0"], TaskState.RESTORING)
    assert sorted(map(str, bench.updater.adding)) == ["app-totals-changelog-0", "users-0", "users-1"]


def test_a_task_that_another_thread_has_not_closed_yet_is_opened_when_it_has(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """It has not heard of the group's decision while it waits for a broker, say."""
    bench.assign("by-user-0")
    other = Bench(TaskManager(TOPOLOGY, bench.directory, FakeUpdater(), bench.offsets), *[None] * 3)  # type: ignore[arg-type]
    other.assign("by-user-0", "by-user-1")
    other.manager.open_new(COUNTS)
    assert other.states() == {"1_1": TaskState.RESTORING}
    assert not other.manager.settled
    assert caplog.text.count("task 1_0 is another thread's still") == 1
    bench.manager.revoked(partitions("by-user-0"))
    other.manager.open_new(COUNTS)
    assert other.states() == dict.fromkeys(["1_0", "1_1"], TaskState.RESTORING)
    other.manager.close()


def test_a_restored_task_runs_and_is_read_from_where_the_group_is(bench: Bench) -> None:
    bench.offsets.committed = {TopicPartition("users", 0): 7, TopicPartition("users", 1): 99}
    bench.offsets.starts = {TopicPartition("orders", 0): 3}
    bench.assign("orders-0", "users-0", "by-user-0")
    assert bench.restore() == {}
    assert bench.states() == dict.fromkeys(["0_0", "1_0"], TaskState.RESTORING)
    assert bench.restore("users-0") == {TopicPartition("users", 0): 7, TopicPartition("orders", 0): 3}
    assert bench.states() == {"0_0": TaskState.RUNNING, "1_0": TaskState.RESTORING}
    assert list(bench.manager.running(0)) == [0]
    assert bench.manager.running(1) == {}
    assert bench.restore() == {}


def test_a_topic_counts_as_the_one_that_was_there_first_until_nothing_of_it_is_read(bench: Bench) -> None:
    """What runs was read from the old one: its offsets must not be committed as those of the new."""
    bench.assign("orders-0", "users-0")
    bench.restore("users-0")
    old = {"orders": "orders-id", "users": "users-id"}
    assert bench.manager.topic_ids == old
    bench.offsets.ids = {"orders": "new"}
    bench.assign("orders-1", "users-1")
    bench.restore("users-1")
    assert bench.manager.topic_ids == old
    bench.manager.close_all()
    assert bench.manager.topic_ids == {}
    bench.manager.open_new(COUNTS)
    bench.restore("users-0", "users-1")
    assert bench.manager.topic_ids == old | {"orders": "new"}


@pytest.mark.parametrize(
    ("start", "end", "word"),
    [(8, 20, "deleted before they were processed"), (2, 6, "truncated, or the topic made anew")],
)
def test_a_committed_offset_that_the_log_does_not_have_is_told_and_all_that_it_has_is_read(
    bench: Bench, caplog: pytest.LogCaptureFixture, start: int, end: int, word: str
) -> None:
    orders = TopicPartition("orders", 0)
    bench.offsets.committed, bench.offsets.starts, bench.offsets.ends = {orders: 7}, {orders: start}, {orders: end}
    bench.assign("orders-0", "users-0")
    assert bench.restore("users-0")[orders] == start
    assert [word in each.getMessage() and "orders-0" in each.getMessage() for each in caplog.records] == [True]


def test_a_committed_offset_at_the_end_of_its_log_is_gone_on_from(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    orders = TopicPartition("orders", 0)
    bench.offsets.committed, bench.offsets.ends = {orders: 7}, {orders: 7}
    bench.assign("orders-0", "users-0")
    assert bench.restore("users-0")[orders] == 7
    assert caplog.records == []


def test_running_tasks_go_on_with_a_changelog_that_was_made_anew_but_not_with_a_users_topic(bench: Bench) -> None:
    bench.assign("orders-0", "users-0", "by-user-0", "by-user-1")
    bench.restore("users-0", "app-totals-changelog-0")
    stores = bench.updater.stores
    for store in stores.values():
        store.follow("first", 5)
    bench.manager.follow({"users": "second", "app-totals-changelog": "second", "orders": "second"})
    assert {str(each): (store.topic_id(), store.offset()) for each, store in stores.items()} == {
        "users-0": ("first", 5),
        "app-totals-changelog-0": ("second", 0),
        "app-totals-changelog-1": ("first", 5),  # it is not complete: what it has is not all
    }


def test_tasks_that_are_being_restored_are_opened_anew_and_those_that_run_go_on(bench: Bench) -> None:
    bench.assign("orders-0", "users-0", "by-user-0")
    bench.restore("users-0")
    running, restoring = bench.manager.tasks.values()
    assert bench.manager.close_restoring()
    assert (running.state, restoring.state) == (TaskState.RUNNING, TaskState.CLOSED)
    bench.manager.open_new(COUNTS)
    bench.restore("app-totals-changelog-0")
    assert bench.states() == dict.fromkeys(["0_0", "1_0"], TaskState.RUNNING)
    assert not bench.manager.close_restoring()
    assert running.state is TaskState.RUNNING


def test_a_broker_that_is_away_delays_the_start_and_loses_no_completion(bench: Bench) -> None:
    bench.assign("by-user-0")
    bench.offsets.away = True
    with pytest.raises(BrokerNotAvailableException):
        bench.restore("app-totals-changelog-0")
    assert bench.states() == {"1_0": TaskState.RESTORING}
    bench.offsets.away = False
    assert bench.restore() == {TopicPartition("by-user", 0): 0}
    assert bench.states() == {"1_0": TaskState.RUNNING}


def test_all_is_settled_when_every_partition_belongs_to_a_running_task(bench: Bench) -> None:
    assert bench.manager.settled
    bench.assign("orders-0")
    assert not bench.manager.settled
    bench.assign("users-0")
    assert not bench.manager.settled
    bench.restore("users-0")
    assert bench.manager.settled
    bench.manager.revoked(partitions("orders-0", "users-0"))
    assert bench.manager.settled


def test_losing_one_input_closes_the_task_and_gives_up_all_of_its_inputs(bench: Bench) -> None:
    bench.assign("orders-0", "users-0", "by-user-0", "by-user-1")
    bench.restore("users-0", "app-totals-changelog-0", "app-totals-changelog-1")
    gone = bench.manager.tasks[TaskId(0, 0)]
    assert bench.manager.revoked(partitions("orders-0", "by-user-1")) == partitions("orders-0", "users-0", "by-user-1")
    assert bench.states() == {"1_0": TaskState.RUNNING}
    assert gone.state is TaskState.CLOSED
    assert not gone.stores["users"].is_open
    assert sorted(map(str, bench.updater.removed)) == ["app-totals-changelog-1", "users-0"]
    # What was not taken away stays assigned: the other input need only come back.
    bench.assign("orders-0")
    assert bench.states() == {"0_0": TaskState.RESTORING, "1_0": TaskState.RUNNING}


def test_the_updater_lets_go_of_a_store_before_it_is_closed(bench: Bench) -> None:
    bench.assign("by-user-0", "by-user-1")
    bench.manager.revoked(partitions("by-user-0"))
    bench.manager.close()
    assert bench.updater.open_stores_at_removal == [True, True]


def test_revoking_what_belongs_to_no_task_closes_nothing(bench: Bench) -> None:
    bench.assign("orders-0", "by-user-0")
    assert bench.manager.revoked(partitions("orders-0")) == frozenset()
    assert bench.states() == {"1_0": TaskState.RESTORING}


def test_closing_closes_all_even_when_one_fails(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.assign("by-user-0", "by-user-1", "orders-0", "users-0")
    tasks = list(bench.manager.tasks.values())
    close = KeyValueStore.close

    def failing_close(store: KeyValueStore) -> None:
        close(store)
        if str(store.changelog) == "app-totals-changelog-0":
            raise ProcessorStateException("disk full")

    monkeypatch.setattr(KeyValueStore, "close", failing_close)
    with pytest.raises(ProcessorStateException, match="disk full"):
        bench.manager.close()
    assert {task.state for task in tasks} == {TaskState.CLOSED}
    assert not any(store.is_open for task in tasks for store in task.stores.values())
    assert bench.manager.tasks == {}


def test_a_task_that_can_not_be_opened_leaves_the_others_in_place(bench: Bench) -> None:
    bench.assign("orders-0", "users-0")
    bench.directory.store_folder(TaskId(1, 0), "totals").write_text("no folder")
    with pytest.raises(ProcessorStateException, match="totals can't be opened"):
        bench.assign("by-user-0")
    assert bench.states() == {"0_0": TaskState.RESTORING}


def test_what_ended_the_updater_ends_the_thread_that_asks(bench: Bench) -> None:
    bench.assign("by-user-0")
    bench.updater.failure = ProcessorStateException("disk full")
    with pytest.raises(ProcessorStateException, match="disk full"):
        bench.restore()


@dataclass
class FakeStandbys:
    """Writes down what it is told, and whether the stores of the tasks were open then."""

    bench: Bench
    told: list[tuple[str, list[str], list[bool]]] = field(default_factory=list)

    def promote(self, tasks: Collection[TaskId]) -> None:
        self.told.append(("promote", [str(each) for each in tasks], []))

    def let_go(self, tasks: Collection[TaskId]) -> None:
        stores = [store.is_open for store in self.bench.updater.stores.values()]
        self.told.append(("let go", [str(each) for each in tasks], stores))


def test_standbys_make_way_before_a_task_opens_and_get_its_folder_when_it_is_closed(bench: Bench) -> None:
    standbys = FakeStandbys(bench)
    bench.manager._standbys = standbys
    bench.assign("by-user-0")
    bench.assign("orders-0")
    bench.manager.revoked(partitions("by-user-0"))
    assert standbys.told == [("promote", ["1_0"], []), ("let go", ["1_0"], [False])]


def test_tasks_with_damaged_stores_are_closed_set_aside_and_opened_again_and_no_others(bench: Bench) -> None:
    standbys = FakeStandbys(bench)
    bench.manager._standbys = standbys
    bench.assign("orders-0", "users-0", "by-user-0")
    bench.restore("users-0", "app-totals-changelog-0")
    assert not bench.manager.any_damaged
    assert bench.manager.close_damaged() == frozenset()
    sound, damaged = bench.manager.tasks[TaskId(0, 0)], bench.manager.tasks[TaskId(1, 0)]
    DAMAGED.note(damaged.stores["totals"].folder, "Corruption: block")
    assert bench.manager.any_damaged
    assert bench.manager.close_damaged() == partitions("by-user-0")
    assert damaged.state is TaskState.CLOSED
    assert sound.state is TaskState.RUNNING
    assert (bench.directory.quarantined, bench.manager.any_damaged) == (1, False)
    assert not bench.manager.settled
    # Its folder is still this instance's own.
    assert [what for what, *_ in standbys.told] == ["promote"]
    bench.assign()
    assert bench.states() == {"0_0": TaskState.RUNNING, "1_0": TaskState.RESTORING}
