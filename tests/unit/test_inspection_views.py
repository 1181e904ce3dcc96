"""Which stores a client shows to queries: those of its tasks by their states, and its standbys'."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from state_kit import memory_folder

from streams_runtime.inspection import ClientInspection
from streams_runtime.query.local import LocalSegments, LocalView
from streams_runtime.state.directory import StateDirectory
from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import window_key
from streams_runtime.tasks.standby import StandbyTask
from streams_runtime.tasks.task import Task
from streams_runtime.topology.plan import SubTopology, TaskId, Topology
from streams_runtime.topology.store_specs import StoreSpec, Windowing

SPECS = (
    StoreSpec("totals", "key-value", "app-totals-changelog", False, "totals"),
    StoreSpec("minutes", "window", "app-minutes-changelog", False, "minutes", Windowing(120_000, 60_000)),
    StoreSpec("visits", "session", "app-visits-changelog", False, "visits", Windowing(120_000)),
)
SUB = SubTopology(0, (), ("orders",), (), (), SPECS)


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made


@pytest.fixture
def tasks(folder: Path) -> Iterator[dict[str, Any]]:
    """An active task, one that is being restored, and a standby, each of a partition of its own."""
    made: dict[str, Any] = {
        "active": Task(TaskId(0, 0), SUB, frozenset()),
        "restoring": Task(TaskId(0, 1), SUB, frozenset()),
        "standby": StandbyTask(TaskId(0, 2), SUB),
    }
    with ExitStack() as closing, StateDirectory(folder, "app", "i") as directory:
        for task in made.values():
            task.open(directory)
            closing.callback(task.close)
        made["active"].run()
        yield made


@pytest.fixture
def inspection(tasks: dict[str, Any]) -> ClientInspection:
    def manager(task: Any) -> Any:
        return SimpleNamespace(tasks=SimpleNamespace(tasks={task.id: task}))

    threads = [manager(tasks["active"]), manager(tasks["restoring"])]
    standbys = SimpleNamespace(tasks={tasks["standby"].id: tasks["standby"]})
    client: Any = SimpleNamespace(threads=threads, standbys=standbys)
    unused: Any = None
    return ClientInspection(client, Topology("app", (SUB,)), unused, unused, unused, unused)


@pytest.mark.parametrize("store", [spec.name for spec in SPECS])
def test_active_stores_are_shown_and_stale_ones_on_request(inspection: ClientInspection, store: str) -> None:
    assert {number: view.is_active for number, view in inspection.views(store).items()} == {0: True}
    assert {number: view.is_active for number, view in inspection.stale_views(store).items()} == {
        0: True,
        1: False,
        2: False,
    }
    one_by_one = {number: inspection.active_view(store, number) for number in range(4)}
    assert {number: view.partition for number, view in one_by_one.items() if view is not None} == {0: 0}
    assert sorted(inspection.expected_partitions(store)) == [0, 1]
    assert inspection.store_type(store) == next(spec.kind for spec in SPECS if spec.name == store)


def test_a_view_follows_its_task(inspection: ClientInspection, tasks: dict[str, Any]) -> None:
    view = inspection.stale_views("totals")[1]
    tasks["restoring"].run()
    assert (view.is_active, view.is_open) == (True, True)
    assert sorted(inspection.views("totals")) == [0, 1]
    assert inspection.active_view("totals", 1) is not None
    tasks["restoring"].close()
    assert inspection.active_view("totals", 1) is None
    assert (view.is_active, view.is_open) == (False, False)
    assert sorted(inspection.stale_views("totals")) == [0, 2]


def test_a_view_reads_its_kind_of_store(inspection: ClientInspection, tasks: dict[str, Any]) -> None:
    key = window_key(b"k", 60_000)
    tasks["standby"].stores["minutes"].write(Updates([key], [b"v"], [1]), 1)
    minutes, totals = inspection.stale_views("minutes")[2], inspection.stale_views("totals")[2]
    assert isinstance(minutes, LocalSegments)
    assert isinstance(totals, LocalView)
    assert (minutes.get(key), list(minutes.fetch(b"k", b"k", 0, 60_000))) == (b"v", [(key, b"v")])
    assert totals.get(b"k") is None
