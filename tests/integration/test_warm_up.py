"""Instances that are added: their tasks are warm before they move, and are processed where they were till then."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from moving_tasks import (
    KEYS,
    Application,
    active,
    never_ready,
    positions,
    restored,
    restored_of,
    running,
    seen_to_warm_up,
    warm_partitions,
)
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.query.server.query_server import QueryServer
from streams_runtime.states import ClientState
from streams_runtime.tasks.announcements import announcing_client_id
from streams_runtime.threads import warm_up as warm_up_module
from streams_runtime.topology.plan import TaskId

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]
STATE_PATHS = ("state", "state/figures")


@pytest.mark.parametrize(("guarantee", "threads"), [("at_least_once", 1), ("exactly_once_v2", 2)])
def test_what_an_added_instance_gets_is_warm_before_it_moves_and_is_processed_by_the_old_one_till_then(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str, threads: int
) -> None:
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 4, guarantee=guarantee, streamThreads=threads)
    made.write(KEYS)
    with made.instance(0) as first:
        eventually(lambda: running(first) and made.done())
        with made.busy() as rounds, ExitStack() as opened:
            with never_ready(first):
                second = opened.enter_context(made.instance(1))
                said: Any = seen_to_warm_up(second)
                assert {(row["id"], row["owner"], row["instance"]) for row in said["tasks"]} == {
                    (f"0_{number}", first.instance, second.instance) for number in (2, 3)
                }
                assert second.state is ClientState.REBALANCING
                before = positions(first)
                eventually(lambda: all(at > before[each] for each, at in positions(first).items()))
                assert (first.state, active(first), active(second)) == (ClientState.RUNNING, [0, 1, 2, 3], [])
            eventually(lambda: running(second) and active(second) == [2, 3] and active(first) == [0, 1])
            # All but what was written since: the standbys had it.
            assert restored(second) <= 100 + 2 * rounds()
            assert second.context.standby_progress.updates.total >= 2 * KEYS
        eventually(made.done, "all is processed", 60)
        expected = {f"{number}-{k}": 1 for number in range(4) for k in range(KEYS)}
        assert made.counts() == expected | {f"busy-{number}": rounds() for number in range(4)}


def test_instances_whose_ranges_shift_warm_up_too_and_two_that_come_together_join_together(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 8, acceptableRecoveryLag=0)
    made.write(KEYS)
    with ExitStack() as opened, made.instance(0) as first:
        eventually(lambda: running(first) and made.done())
        second = opened.enter_context(made.instance(1))
        eventually(lambda: running(second) and (active(first), active(second)) == ([0, 1, 2, 3], [4, 5, 6, 7]))
        third, fourth = (opened.enter_context(made.instance(each)) for each in (2, 3))
        clients = [first, second, third, fourth]
        wanted = [[0, 1], [2, 3], [4, 5], [6, 7]]
        eventually(lambda: all(map(running, clients)) and [active(each) for each in clients] == wanted)
        # 2 and 3 went from the first to the second; nobody restored what standbys had read. Between the joins of the
        # last two another assignment may stand for a second, whose tasks are cold.
        assert [restored_of(each, tasks) for each, tasks in zip(clients[1:], wanted[1:], strict=True)] == [0, 0, 0]
        assert second.context.standby_progress.updates.total >= 4 * KEYS
        made.write(KEYS)
        eventually(made.done, "all is processed", 60)
        assert set(made.counts().values()) == {2}


def copied(made: StreamsClient) -> bool:
    """Whether each of its stores has a snapshot at the offset at which it is."""
    snapshots = made.context.snapshots
    assert snapshots is not None
    offsets = {each.partition: each.offset for each in snapshots.snapshotter.accounts}
    tasks = [task for thread in made.threads for task in thread.tasks.tasks.values()]
    return offsets == {task.id.partition: task.stores["totals"].offset() for task in tasks}


def spoil(bucket: Path) -> None:
    """Let all files of snapshots have another last byte."""
    found = [each for each in bucket.rglob("*") if each.is_file() and each.suffix != ".json"]
    files = [each for each in found if each.stat().st_size]
    assert files
    for each in files:
        content = each.read_bytes()
        each.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@pytest.mark.parametrize("damaged", [False, True], ids=["whole", "damaged"])
def test_what_an_added_instance_gets_begins_with_snapshots_where_there_are_some(
    broker: Any, namespace: str, tmp_path: Path, damaged: bool
) -> None:
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 2)
    made.spec["state"] = {"snapshots": {"url": f"file://{tmp_path}/bucket", "interval": "1s"}}
    keys = 12_000  # a shorter changelog is read without a look into the bucket
    made.write(keys)
    with made.instance(0) as first:
        eventually(lambda: running(first) and made.done())
        eventually(lambda: copied(first), "both stores have snapshots", 60)
        if damaged:
            spoil(tmp_path / "bucket")
        with made.instance(1) as second:
            seen_to_warm_up(second)
            eventually(lambda: running(second) and active(second) == [1] and active(first) == [0], seconds=60)
            context: Any = second.context
            fetched = context.snapshots.fetcher.totals
            assert (fetched.fetched, fetched.put_aside > 0) == ((0, True) if damaged else (1, False))
            assert context.standby_progress.updates.total == (keys if damaged else 0)
            assert restored(second) == 0
            made.write(keys)
            eventually(made.done, "all is processed", 60)
        assert set(made.counts().values()) == {2}


def test_an_instance_that_is_not_to_warm_up_takes_part_at_once(broker: Any, namespace: str, tmp_path: Path) -> None:
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 2, warmUpTimeout="0ms")
    made.write(KEYS)
    with made.instance(0) as first:
        eventually(lambda: running(first) and made.done())
        with made.instance(1) as second:
            eventually(lambda: running(second) and active(second) == [1] and active(first) == [0], seconds=60)
            assert (second.context.standby_progress.updates.total, restored(second)) == (0, KEYS)


def test_an_instance_whose_owner_ends_during_the_warm_up_takes_part_at_once(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 2)
    made.write(KEYS)
    with ExitStack() as opened:
        first = opened.enter_context(made.instance(0))
        eventually(lambda: running(first) and made.done())
        with never_ready(first):
            second = opened.enter_context(made.instance(1))
            seen_to_warm_up(second)
            ended = time.monotonic()
            first.close()
            eventually(lambda: running(second), seconds=60)
            assert time.monotonic() - ended < 40, "it is patience that has ended"
        eventually(lambda: active(second) == [0, 1])  # when the session of the first has ended
        made.write(KEYS)
        eventually(made.done, "all is processed", 60)
        assert set(made.counts().values()) == {2}


def test_an_announced_instance_that_ends_leaves_the_group_and_its_tasks_where_they_are(
    broker: Any, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 2)
    made.write(KEYS)
    answers: list[int] = []

    def stop(server: QueryServer) -> None:
        """By now all else of a client is closed."""
        answers.extend(httpx.get(f"{made.made[second.instance].url}/{each}").status_code for each in STATE_PATHS)
        stopping(server)

    stopping = QueryServer.stop
    with made.instance(0) as first, never_ready(first):
        eventually(lambda: running(first) and made.done())
        moves = len(first.transitions)
        group, admin = first.context.application.application_id, first.context.admin
        with made.instance(1) as second:
            eventually(lambda: len(admin.group_members(group)) == 2)
            monkeypatch.setattr(QueryServer, "stop", stop)
            assert second.close(60)
            monkeypatch.undo()
        assert (second.state, answers) == (ClientState.NOT_RUNNING, [200, 200])
        eventually(lambda: [each.instance_id for each in admin.group_members(group)] == [f"{first.instance}-1"])
        made.write(KEYS)
        eventually(made.done, "all is processed", 60)
        assert (len(first.transitions), active(first)) == (moves, [0, 1])


GHOST = """
import sys, time
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.consumer.announcement import Announcement
made = Announcement(client_properties(sys.argv[1], {}), sys.argv[2], sys.argv[3])
while True:
    made.poll()
    time.sleep(0.1)
"""


def test_an_announced_instance_that_is_killed_is_waited_for_until_its_session_ends(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 4)
    made.write(KEYS)
    with ExitStack() as opened:
        first = opened.enter_context(made.instance(0))
        eventually(lambda: running(first) and made.done())
        group, ghost = first.context.application.application_id, f"{namespace}-i-2"
        made.elsewhere[ghost] = "http://127.0.0.1:1"  # nobody answers there
        command = [sys.executable, "-c", GHOST, made.bootstrap, group, announcing_client_id(ghost, "127.0.0.1:1", 1)]
        with subprocess.Popen(command) as process:
            opened.callback(process.kill)
            eventually(
                lambda: any(each.client_id.startswith(ghost) for each in first.context.admin.group_members(group))
            )
            second = opened.enter_context(made.instance(1))
            said: Any = seen_to_warm_up(second)
            # Of three instances the second one has the task in the middle.
            assert [(row["id"], row["instance"]) for row in said["tasks"]][:1] == [("0_2", second.instance)]
            assert said["unready"] == [ghost]
            process.kill()
        eventually(lambda: running(second) and active(second) == [2, 3] and active(first) == [0, 1])
        assert restored(second) == 0
        made.write(KEYS)
        eventually(made.done, "all is processed", 60)
        assert set(made.counts().values()) == {2}


def test_an_owner_that_is_taken_away_for_good_during_a_warm_up_loses_nothing_that_was_warm(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 4)
    made.write(KEYS)
    with ExitStack() as opened:
        first, second = (opened.enter_context(made.instance(each)) for each in (0, 1))
        eventually(lambda: running(first) and running(second) and made.done())
        eventually(lambda: (active(first), active(second)) == ([0, 1], [2, 3]))
        with never_ready(first):
            third = opened.enter_context(made.instance(2))
            seen_to_warm_up(third)
            eventually(lambda: warm_partitions(third) == [3])
            assert second.close(60, leave_group=True)
        eventually(lambda: running(third) and active(third) == [2, 3] and active(first) == [0, 1])
        assert restored_of(third, [3]) == 0
        made.write(KEYS)
        eventually(made.done, "all is processed", 60)
        assert set(made.counts().values()) == {2}


def test_tasks_whose_owner_always_writes_more_than_may_be_missing_move_when_they_are_followed_closely(
    broker: Any, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streams_runtime.threads")
    monkeypatch.setattr("streams_runtime.tasks.warm_up_patience.PATIENCE_SECONDS", 1e9)
    lags = warm_up_module.standby_lags

    def never_none_missing(*given: Any) -> Mapping[TaskId, int | None]:
        return {task: None if lag is None else lag + 101 for task, lag in lags(*given).items()}

    monkeypatch.setattr(warm_up_module, "standby_lags", never_none_missing)
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 2)
    made.write(KEYS)
    with made.instance(0) as first:
        eventually(lambda: running(first) and made.done())
        with made.busy() as rounds, made.instance(1) as second:
            seen_to_warm_up(second)
            eventually(lambda: running(second) and active(second) == [1] and active(first) == [0], seconds=120)
            assert restored(second) <= 100 + rounds()
            told = [record.getMessage() for record in caplog.records if "takes part after" in record.getMessage()]
            assert ["More than 100 records are written between two looks" in each for each in told] == [True]


def test_a_paused_application_gets_an_instance_that_warms_up(broker: Any, namespace: str, tmp_path: Path) -> None:
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 2)
    made.write(KEYS)
    with made.instance(0) as first:
        eventually(lambda: running(first) and made.done())
        first.pause()
        made.write(KEYS)
        with made.instance(1) as second:
            second.pause()
            seen_to_warm_up(second)
            eventually(lambda: running(second) and active(second) == [1] and active(first) == [0])
            assert restored(second) == 0
            assert set(made.counts().values()) == {1}
            for each in (first, second):
                each.resume()
            eventually(made.done, "all is processed", 60)
        assert set(made.counts().values()) == {2}


def test_an_instance_that_comes_back_within_its_session_and_two_cold_ones_do_not_warm_up(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    made = Application(broker.bootstrap_servers, namespace, tmp_path, 4)
    made.write(KEYS)
    with made.instance(0) as first, made.instance(1) as second:
        eventually(lambda: running(first) and running(second) and made.done(), seconds=60)
        assert sorted([*active(first), *active(second)]) == [0, 1, 2, 3]
        second.close()
        with made.instance(1) as again:
            eventually(lambda: running(again), seconds=60)
            assert again.context.standby_progress.updates.total == 0
