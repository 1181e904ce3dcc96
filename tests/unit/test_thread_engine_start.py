"""When a stream thread has Spark started: beside what leaves the cores idle, and after a load that needs them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.threads import spark_start
from streams_runtime.threads.spark_start import SparkStart
from streams_runtime.topology.plan import SubTopology, TaskId, Topology
from streams_runtime.topology.store_specs import StoreSpec

STORE = StoreSpec("totals", "key-value", "app-totals-changelog", False, "totals")
WITH_STORES = Topology("app", (SubTopology(0, (), ("orders",), (), (), (STORE,)),))
WITHOUT = Topology("app", (SubTopology(0, (), ("orders",), (), (), ()),))


class Member:
    """A thread's start of Spark, over an engine that notes that it is told to start."""

    def __init__(self, folder: Path, topology: Topology = WITH_STORES) -> None:
        self.spark_starts = 0
        self.assigned = self.running = False
        self.updater: Any = SimpleNamespace(loading=False)
        directory = StateDirectory(folder, "app", "test")
        directory.root.mkdir(exist_ok=True)
        self.engine = engine = SimpleNamespace(start=self._start, formats=None)
        context: Any = SimpleNamespace(topology=topology, directory=directory, engine=engine)
        self.start = SparkStart(context, self.updater)

    def started(self) -> bool:
        self.start.start_if_due(self.assigned, self.running)
        return self.spark_starts > 0

    def _start(self) -> None:
        self.spark_starts += 1


def test_a_new_member_with_stores_leaves_the_cores_to_a_bulk_load(tmp_path: Path) -> None:
    member = Member(tmp_path)
    assert not member.started(), "its assignment is not there yet"
    member.assigned, member.updater.loading = True, True
    assert not member.started()
    member.updater.loading = False
    assert member.started()


def test_without_a_bulk_load_to_come_spark_starts_while_the_group_is_joined(tmp_path: Path) -> None:
    assert Member(tmp_path, WITHOUT).started(), "it has no stores"
    StateDirectory(tmp_path, "app", "test").store_folder(TaskId(0, 1), "totals").mkdir(parents=True, exist_ok=True)
    assert Member(tmp_path).started(), "its stores are here from before"


def test_a_member_that_is_not_let_in_has_spark_started_however_often_it_joins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(spark_start.time, "monotonic", lambda: now[0])
    member, again = Member(tmp_path), Member(tmp_path)
    member.start.begin()
    again.start.begin()
    assert not member.started()
    now[0] += 10
    assert member.started()
    again.assigned, again.updater.loading = True, True
    assert not again.started(), "the load that it would wait for has begun"


def test_where_an_earlier_start_has_left_its_findings_spark_starts_once_the_thread_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(spark_start.time, "monotonic", lambda: now[0])
    member, slow = Member(tmp_path, WITHOUT), Member(tmp_path, WITHOUT)
    for each in (member, slow):
        each.engine.formats = object()
        each.start.begin()
        assert not each.started(), "it would only put off what the thread does"
        each.assigned = True
        assert not each.started(), "its tasks are still being restored"
    member.running = True
    assert member.started()
    now[0] += 10
    assert slow.started(), "a restoration may take long"
