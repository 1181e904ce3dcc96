"""Instances that are added: their tasks are warm before they move, and are processed where they were till then."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from clients import client, last_values, make_topics, send
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.server.query_server import QueryServer
from streams_runtime.states import ClientState
from streams_runtime.tasks.announcements import announcing_client_id

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]
KEYS = 5_000  # in each partition
STATE_PATHS = ("state", "state/figures")


def totals(prefix: str) -> str:
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {{format: json, schema: "amount BIGINT"}}}}
steps: [{{name: totals, from: orders, aggregate: {{n: count(*)}}, store: totals}}]
sinks: [{{from: totals, topic: {prefix}-totals, value: {{format: json}}}}]
"""


class Application:
    """Instances of one application in this process, which know of each other where they answer."""

    def __init__(self, bootstrap: str, name: str, folder: Path, partitions: int, **processing: Any) -> None:
        self.bootstrap, self.name, self.folder, self.partitions = bootstrap, name, folder, partitions
        self.orders = f"{name}-orders"
        self.spec: dict[str, Any] = {"processing": {"acceptableRecoveryLag": 100, **processing}}
        self.made: dict[str, StreamsClient] = {}
        self.elsewhere: dict[str, str] = {}  # URLs of instances that are not of this process
        self.written = 0
        make_topics(bootstrap, **{self.orders: partitions, f"{name}-totals": 1})

    @contextmanager
    def instance(self, ordinal: int) -> Iterator[StreamsClient]:
        topology, folder = totals(self.name), self.folder / str(ordinal)
        name = f"i-{ordinal}"
        with client(self.bootstrap, self.name, topology, folder, name, peers=self._url_of, **self.spec) as made:
            self.made[made.instance] = made
            made.start()
            yield made

    def write(self, keys: int) -> None:
        """One more record of each of the first keys of each partition."""
        for number in range(self.partitions):
            send(self.bootstrap, self.orders, [(f"{number}-{k}", {"amount": 1}) for k in range(keys)], number)
        self.written += 1

    @contextmanager
    def busy(self) -> Iterator[Callable[[], int]]:
        """A record of a key of its own for each partition all the time; gives how often."""
        stop, rounds = threading.Event(), [0]

        def go_on() -> None:
            while not stop.wait(0.02):
                for number in range(self.partitions):
                    send(self.bootstrap, self.orders, [(f"busy-{number}", {"amount": 1})], number)
                rounds[0] += 1

        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        try:
            yield lambda: rounds[0]
        finally:
            stop.set()
            thread.join()

    def counts(self) -> dict[str, int]:
        committed = self.spec["processing"].get("guarantee") == "exactly_once_v2"
        found: Mapping[str, Any] = last_values(self.bootstrap, f"{self.name}-totals", committed)
        return {key: value["n"] for key, value in found.items()}

    def done(self) -> bool:
        alive = [each for each in self.made.values() if running(each)]
        inputs = [TopicPartition(self.orders, number) for number in range(self.partitions)]
        ends = alive[0].context.admin.end_offsets(inputs) if alive else {}
        return bool(ends) and {each: at for made in alive for each, at in positions(made).items()} == ends

    def _url_of(self, instance: str) -> str | None:
        made = self.made.get(instance)
        return made.url or None if made is not None else self.elsewhere.get(instance)


def active(made: StreamsClient) -> list[int]:
    return sorted(task.partition for thread in made.threads for task in thread.tasks.tasks)


def running(made: StreamsClient) -> bool:
    assert made.state is not ClientState.ERROR, made.error
    return made.state is ClientState.RUNNING and made.spark_ready


@contextmanager
def never_ready(made: StreamsClient) -> Iterator[None]:
    """Warm-ups don't end by themselves: no instance says that it could process records at once."""
    with pytest.MonkeyPatch.context() as patched:
        warm_up: Any = type(made.context.warm_up)
        patched.setattr(warm_up, "_is_ready", property(lambda _: False))
        yield


def seen_to_warm_up(made: StreamsClient) -> object:
    """What it says of its warm-up, as soon as it says something."""
    said: list[object] = []
    eventually(lambda: said.append(made.describe()["warm_up"]) or said[-1] is not None or active(made))
    assert said[-1] is not None, "it took tasks before they were warm"
    return said[-1]


def positions(made: StreamsClient) -> dict[TopicPartition, int]:
    return {each: at for thread in made.threads for each, at in thread.positions.items()}


def restored(made: StreamsClient) -> int:
    return made.context.progress.restored_total


def restored_of(made: StreamsClient, partitions: Collection[int]) -> int:
    return sum(row["restored"] for row in made.context.progress.snapshot() if row["partition"] in partitions)


def warm_partitions(made: StreamsClient) -> list[int]:
    """Of its standbys that have all."""
    rows: Any = made.describe()["standbys"]
    return [int(row["id"].partition("_")[2]) for row in rows if row["lag"] == 0]


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
