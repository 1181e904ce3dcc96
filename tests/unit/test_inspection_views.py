"""Which stores a client shows to queries: those of its tasks by their states, and its standbys'."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from state_kit import memory_folder

from streams_runtime.cli.local.run_folders import InstanceFolder
from streams_runtime.cli.local.run_peers import RunPeers
from streams_runtime.inspection import ClientInspection
from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.kubernetes.pod_peers import PodPeers
from streams_runtime.query.stores.local_partitions import LocalSegments, LocalView
from streams_runtime.settings import Peers, no_last_words
from streams_runtime.state.state_directory import StateDirectory
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
SETTINGS = SimpleNamespace(instance="app-0", last_words=no_last_words)


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
    client: Any = SimpleNamespace(threads=threads)
    context: Any = SimpleNamespace(
        partition_counts={}, topology=Topology("app", (SUB,)), standbys=standbys, admin=None, settings=SETTINGS
    )
    return ClientInspection(client, context)


def owners(client_ids: Sequence[str], **peers: Peers) -> dict[int, str]:
    """The URLs that app-0 names when the group's members have these client ids and a partition each, in order."""
    members = [
        GroupMember(str(number), None, client_id, "/h", (TopicPartition("orders", number),))
        for number, client_id in enumerate(client_ids)
    ]
    client: Any = SimpleNamespace(instance="app-0", url="http://app-0.app.shop.svc:8080")
    admin = SimpleNamespace(group_members=lambda _: tuple(members))
    context: Any = SimpleNamespace(
        partition_counts={}, topology=Topology("app", (SUB,)), admin=admin, settings=SETTINGS
    )
    inspection = ClientInspection(client, context, **peers)
    return {number: owner.url for number, owner in inspection.owners("totals").items()}


def test_an_address_that_only_a_member_of_the_group_names_is_no_owners() -> None:
    claims = ("app-0|evil.example:80|1", "app-1|evil.example:80|1", "app-2|https://evil.example|1", "|evil:1|1")
    assert owners(claims) == {0: "http://app-0.app.shop.svc:8080"}


def test_pods_are_found_by_their_names_in_the_applications_service() -> None:
    peers = PodPeers("app-0", "app-0.app.shop.svc:8080", "https")
    claims = ("app-1|evil.example:80|1", "app-12|app-12.app.shop.svc:8080|2", "app-2||1", "app-3")
    assert owners(claims, peers=peers) == {
        number: f"https://app-{ordinal}.app.shop.svc:8080" for number, ordinal in enumerate((1, 12, 2, 3))
    }


NO_SIBLINGS = (
    *(
        "",
        "app",
        "app-",
        "app-01",
        "app--1",
        "app-1 ",
        "app-1\n",
        "app-\u0661",
        "other-1",
        "xapp-1",
        "app-x-1",
        "APP-1",
    ),
    *(
        "app-1.evil.example",
        "evil.example/app-1",
        "u@evil.example:1/app-1",
        "app-1@evil.example",
        "app-1:80",
        "../app-1",
    ),
    *("app/../app-1", "app-1/../../x", "app-1#", "app-1?", "app-1%2e", "app-1\\", "app-" + "1" * 400),
)


@pytest.mark.parametrize("name", NO_SIBLINGS)
def test_a_name_that_no_pod_of_the_application_can_have_is_vouched_for_by_nobody(name: str, tmp_path: Path) -> None:
    for folder in (tmp_path / "app-1", tmp_path / "run" / "app-0"):
        InstanceFolder(folder).make_ready()
        InstanceFolder(folder).endpoint.write_text('{"url": "http://127.0.0.1:1"}')
    assert PodPeers("app-0", "app-0.app.shop.svc:8080", "http")(name) is None
    assert RunPeers("app-0", tmp_path / "run")(name) is None


def test_instances_of_a_run_are_found_by_the_runs_own_files(tmp_path: Path) -> None:
    folder = InstanceFolder(tmp_path / "app-1")
    peers = RunPeers("app-0", tmp_path)
    assert owners(["app-1|127.0.0.1:6666|1"], peers=peers) == {}
    folder.make_ready()
    folder.endpoint.write_text('{"pid": 7, "url": "http://127.0.0.1:4711"}')
    assert owners(["app-1|127.0.0.1:6666|1"], peers=peers) == {0: "http://127.0.0.1:4711"}
    folder.make_ready()
    assert peers("app-1") is None, "a process that is started again has not said its port yet"


def test_all_instances_are_those_of_the_file_those_of_the_group_and_those_that_ended(tmp_path: Path) -> None:
    run, here = RunPeers("app-0", tmp_path), "http://127.0.0.1:1"
    for ordinal in (1, 3, 10):
        InstanceFolder(tmp_path / f"app-{ordinal}").make_ready()
        InstanceFolder(tmp_path / f"app-{ordinal}").endpoint.write_text(
            f'{{"url": "http://127.0.0.1:{4000 + ordinal}"}}'
        )
    group = ["app-10|x|1", "app-3|x|1", "app-0|x|1", "app-3|x|2", "evil|x|1"]
    admin = SimpleNamespace(group_members=lambda _: [GroupMember("", None, each, "/h", ()) for each in group])
    context: Any = SimpleNamespace(
        partition_counts={},
        topology=Topology("app", (SUB,)),
        admin=admin,
        settings=SimpleNamespace(instance="app-0", last_words=run.last_words),
        application=SimpleNamespace(spec=SimpleNamespace(replicas=2)),
    )
    client: Any = SimpleNamespace(instance="app-0", url=here)
    inspection = ClientInspection(client, context, run)
    inspection._members._clock = itertools.count(0, 10).__next__  # every answer is old
    assert [(each.instance, each.url, each.in_group) for each in inspection.instances()] == [
        ("app-0", here, True),
        ("app-1", "http://127.0.0.1:4001", False),
        ("app-3", "http://127.0.0.1:4003", True),
        ("app-10", "http://127.0.0.1:4010", True),
        ("evil", None, True),
    ]
    del group[:2], group[-2:]
    ended = InstanceFolder(tmp_path / "app-3")
    ended.make_ready()
    ended.termination.write_text(
        '{"state": "ERROR", "class": "LockException", "message": "held by 7", "shutdown": "x"}'
    )
    found = {each.instance: each for each in inspection.instances()}
    assert found.keys() == {"app-0", "app-1", "app-3"}, "app-10 left without a word"
    assert found["app-3"].last_word == {"state": "ERROR", "class": "LockException", "message": "held by 7"}
    assert (found["app-3"].url, found["app-1"].last_word, found["app-0"].last_word) == (None, None, None)


@pytest.mark.parametrize("name", NO_SIBLINGS)
def test_of_what_is_no_instance_of_the_run_no_file_is_read(name: str, tmp_path: Path) -> None:
    for folder in (tmp_path / "app-1", tmp_path / "run" / "app-0"):
        InstanceFolder(folder).make_ready()
        InstanceFolder(folder).termination.write_text('{"state": "ERROR"}')
    assert RunPeers("app-0", tmp_path / "run").last_words(name) is None


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
