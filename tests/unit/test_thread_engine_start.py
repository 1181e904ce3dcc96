"""When a stream thread has Spark started: beside what leaves the cores idle, and after a load that needs them."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from streams_runtime.kafka.consumer.group_consumer import Membership
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.threads import StreamThread
from streams_runtime.topology.plan import SubTopology, TaskId, Topology
from streams_runtime.topology.store_specs import StoreSpec

STORE = StoreSpec("totals", "key-value", "app-totals-changelog", False, "totals")
WITH_STORES = Topology("app", (SubTopology(0, (), ("orders",), (), (), (STORE,)),))
WITHOUT = Topology("app", (SubTopology(0, (), ("orders",), (), (), ()),))


class Member:
    """A thread that is not started, of an application whose engine notes that it is told to start."""

    def __init__(self, folder: Path, topology: Topology = WITH_STORES) -> None:
        self.spark_starts = 0
        self.updater = SimpleNamespace(loading=False)
        directory = StateDirectory(folder, "app", "test")
        directory.root.mkdir(exist_ok=True)
        application: Any = SimpleNamespace(
            topology=topology,
            client_properties={},
            exactly_once=False,
            users_topics=["orders"],
            admin=None,
            directory=directory,
            standbys=None,
            engine=SimpleNamespace(tag_jobs=None, start=self._start),
            make_updater=lambda _: self.updater,
        )
        self.thread = StreamThread("app-0-StreamThread-1", application, Membership("app", "app-0", "app-0"), print)

    def started(self) -> bool:
        self.thread._start_spark()
        return self.spark_starts > 0

    def _start(self) -> None:
        self.spark_starts += 1


def test_a_new_member_with_stores_leaves_the_cores_to_a_bulk_load(tmp_path: Path) -> None:
    member = Member(tmp_path)
    assert not member.started(), "its assignment is not there yet"
    member.thread._assignment_came, member.updater.loading = True, True
    assert not member.started()
    member.updater.loading = False
    assert member.started()


def test_without_a_bulk_load_to_come_spark_starts_while_the_group_is_joined(tmp_path: Path) -> None:
    assert Member(tmp_path, WITHOUT).started(), "it has no stores"
    StateDirectory(tmp_path, "app", "test").store_folder(TaskId(0, 1), "totals").mkdir(parents=True, exist_ok=True)
    assert Member(tmp_path).started(), "its stores are here from before"


def test_a_member_that_is_not_let_in_has_spark_started_however_often_it_joins(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.thread._began_at = time.monotonic() - 10
    member.thread._joined_at = time.monotonic()
    assert member.started()
    again = Member(tmp_path)
    again.thread._assignment_came, again.updater.loading = True, True
    again.thread._began_at = time.monotonic() - 10
    assert not again.started(), "the load that it would wait for has begun"
