"""A task: its stores open together, are restored before it runs, and close together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from state_kit import memory_folder

from streams_runtime.errors import IllegalStateException, ProcessorStateException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.database.rocksdb_adapter import StoreClosed
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store import KeyValueStore, Updates
from streams_runtime.states import TaskState
from streams_runtime.tasks.task import Task
from streams_runtime.topology.plan import SubTopology, TaskId
from streams_runtime.topology.store_specs import StoreSpec

TOTALS = StoreSpec("totals", "key-value", "app-totals-changelog", False, "totals")
USERS = StoreSpec("users", "key-value", "users", True, "users")
SUB = SubTopology(0, (), ("orders", "users"), (), (), (TOTALS, USERS))
INPUTS = frozenset({TopicPartition("orders", 1), TopicPartition("users", 1)})
TOTALS_LOG, USERS_LOG = TopicPartition("app-totals-changelog", 1), TopicPartition("users", 1)


@pytest.fixture
def directory() -> Iterator[StateDirectory]:
    with memory_folder() as folder:
        yield StateDirectory(folder, "app", "test")


@pytest.fixture
def task(directory: StateDirectory) -> Iterator[Task]:
    made = Task(TaskId(0, 1), SUB, INPUTS)
    yield made
    made.close()


def test_opening_a_task_opens_its_stores_and_says_what_to_restore(task: Task, directory: StateDirectory) -> None:
    assert (task.state, task.stores) == (TaskState.CREATED, {})
    restorers = task.open(directory)
    assert task.state is TaskState.RESTORING
    assert [(each.store_name, each.partition, each.source_changelog) for each in restorers] == [
        ("totals", TOTALS_LOG, False),
        ("users", USERS_LOG, True),
    ]
    assert task.changelogs == {TOTALS_LOG, USERS_LOG}
    assert task.stores["totals"].folder == directory.root / "0_1" / "rocksdb" / "totals"
    assert all(store.is_open for store in task.stores.values())


def test_a_task_runs_only_once_all_of_its_stores_are_restored(task: Task, directory: StateDirectory) -> None:
    task.open(directory)
    assert not task.is_restored
    task.note_restored([TOTALS_LOG, TopicPartition("elsewhere", 1), TopicPartition("users", 0)])
    assert not task.is_restored
    task.note_restored([USERS_LOG])
    assert task.is_restored
    assert task.state is TaskState.RESTORING
    task.run()
    assert task.state is TaskState.RUNNING


def test_a_task_without_stores_is_restored_at_once(directory: StateDirectory) -> None:
    task = Task(TaskId(0, 1), SubTopology(0, (), ("orders",), (), (), ()), INPUTS)
    assert task.open(directory) == []
    assert task.is_restored
    task.close()


def test_a_task_that_was_not_opened_can_not_run(task: Task) -> None:
    with pytest.raises(IllegalStateException, match="task 0_1"):
        task.run()


def test_reinitializing_wipes_the_stores_of_those_partitions_and_no_others(
    task: Task, directory: StateDirectory
) -> None:
    task.open(directory)
    for store in task.stores.values():
        store.write(Updates([b"a"], [b"1"], [1]), 5)
    task.reinitialize_state_stores_for_partitions([USERS_LOG, TopicPartition("app-totals-changelog", 0)])
    assert {name: (store.get(b"a"), store.offset()) for name, store in task.stores.items()} == {
        "totals": (b"1", 5),
        "users": (None, None),
    }


@pytest.mark.parametrize("running", [False, True])
def test_closing_closes_the_stores_from_any_state_and_may_be_repeated(
    task: Task, directory: StateDirectory, running: bool
) -> None:
    task.open(directory)
    if running:
        task.run()
    task.close()
    task.close()
    assert task.state is TaskState.CLOSED
    for store in task.stores.values():
        with pytest.raises(StoreClosed):
            store.get(b"a")
    again = Task(TaskId(0, 1), SUB, INPUTS)
    again.open(directory)
    again.close()


def test_a_task_that_was_never_opened_closes(task: Task) -> None:
    task.close()
    assert task.state is TaskState.CLOSED


@pytest.mark.parametrize("failing", ["totals", "users"])
def test_a_store_that_can_not_be_flushed_does_not_keep_the_others_open(
    task: Task, directory: StateDirectory, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task.open(directory)
    close = KeyValueStore.close

    def failing_close(store: KeyValueStore) -> None:
        close(store)
        if store.name == failing:
            raise ProcessorStateException("disk full")

    monkeypatch.setattr(KeyValueStore, "close", failing_close)
    with pytest.raises(ProcessorStateException, match="disk full"):
        task.close()
    assert task.state is TaskState.CLOSED
    assert [store.is_open for store in task.stores.values()] == [False, False]


def test_a_store_that_can_not_be_opened_leaves_none_open(task: Task, directory: StateDirectory) -> None:
    blocked = directory.store_folder(task.id, "users")
    blocked.write_text("no folder")
    with pytest.raises(ProcessorStateException, match="users can't be opened"):
        task.open(directory)
    assert task.stores == {}
    assert task.state is TaskState.CREATED
    free = KeyValueStore("totals", TOTALS_LOG, Path(directory.store_folder(task.id, "totals")))
    free.close()
