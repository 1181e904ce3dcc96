"""Standby tasks of whole clients: kept warm elsewhere, promoted without restoring, demoted without being wiped."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, send, until_running
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.restore.restore_listener import SuspendReason
from streams_runtime.states import ClientState
from streams_runtime.tasks.client_tags import tagged_client_id, tags_of
from streams_runtime.tasks.standby_placement import owners_of, place_standbys, stateful_tasks
from streams_runtime.topology.plan import SubTopology, Topology
from streams_runtime.topology.store_specs import StoreSpec

pytestmark = pytest.mark.integration


def totals(prefix: str) -> str:
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {{format: json, schema: "amount BIGINT"}}}}
steps: [{{name: totals, from: orders, aggregate: {{total: sum(amount), n: count(*)}}, store: totals}}]
sinks: [{{from: totals, topic: {prefix}-totals}}]
"""


def standbys(made: StreamsClient) -> dict[str, int | None]:
    """The standbys of a client with their lags."""
    return {row["id"]: row["lag"] for row in made.describe()["standbys"]}  # type: ignore[attr-defined]


def active(made: StreamsClient) -> list[str]:
    return sorted(row["id"] for row in made.describe()["tasks"])  # type: ignore[attr-defined]


def counter(made: StreamsClient, name: str) -> int:
    return made.describe()["counters"][name]  # type: ignore[index, no-any-return]


def warm(first: StreamsClient, second: StreamsClient) -> bool:
    """Whether each of two clients keeps what the other one has, up to its end."""
    lags = [*standbys(first).values(), *standbys(second).values()]
    return [*standbys(first)] == active(second) and [*standbys(second)] == active(first) and lags == [0] * 4


def read(made: StreamsClient, stale: bool = False) -> dict[str, Any]:
    with made.store(StoreQueryParameters("totals", stale=stale)).all() as entries:
        return {key: value["n"] for key, value in entries}


class Heard:
    """A StandbyUpdateListener that writes down why standbys went away, and counts records."""

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}
        self.records = 0
        self.reasons: list[tuple[int, str]] = []

    def on_update_start(self, partition: TopicPartition, store: str, start: int) -> None:
        self.starts[partition.partition] = start

    def on_batch_loaded(
        self, partition: TopicPartition, store: str, task: str, batch_end: int, records: int, end: int
    ) -> None:
        assert task == f"0_{partition.partition}"
        assert batch_end <= end
        self.records += records

    def on_update_suspended(
        self, partition: TopicPartition, store: str, position: int, end: int, reason: SuspendReason
    ) -> None:
        assert position <= end
        self.reasons.append((partition.partition, str(reason)))


@pytest.mark.usefixtures("spark")
def test_a_standby_follows_is_read_on_request_is_promoted_without_restoring_and_demoted_without_being_wiped(
    broker: Any, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 4, f"{namespace}-totals": 1})
    half = [(f"u{i % 50}", {"amount": i}) for i in range(500)]
    send(bootstrap, orders, half)
    everything = {f"u{i}": 20 for i in range(50)}
    spec = {"processing": {"standbyReplicas": 1, "rackAwareAssignmentTags": ["example.com/zone"]}}
    west, east = ({"example.com/zone": zone, "os": "linux"} for zone in ("west", "east"))
    heard, folders = Heard(), [tmp_path / "0", tmp_path / "1"]
    caplog.set_level(logging.WARNING, "streams_runtime")
    with client(bootstrap, namespace, totals(namespace), folders[0], "i-0", heard, tags=west, **spec) as first:
        with client(bootstrap, namespace, totals(namespace), folders[1], "i-1", tags=east, **spec) as second:
            for each in (first, second):
                each.start()
            for each in (first, second):
                until_running(each, 90)
            eventually(lambda: warm(first, second), "each instance keeps the other's tasks up to their ends")
            # The first to come may have done all of the first half alone; its standbys then have nothing to read.
            send(bootstrap, orders, half)
            until_done_together([first, second], orders)
            eventually(lambda: warm(first, second), "each instance follows what the other does")
            # Keys of the other's partitions are read here on request only.
            own, other = read(first), read(second)
            assert {**own, **other} == everything
            assert not own.keys() & other.keys()
            # A lag is as old as the last fetch; here all that was written has to be there.
            eventually(lambda: read(first, stale=True) == read(second, stale=True) == everything)
            assert {row["type"] for row in first.describe()["tasks"]} == {"active"}  # type: ignore[attr-defined]
            assert counter(first, "updated_records") == heard.records > 0
            promoted = active(second)
            # When the second was the first to process, the first instance has warmed up what it got of it.
            came = heard.reasons.copy()
            assert sorted(came) in ([], [(int(task[2:]), "PROMOTED") for task in active(first)])
        updated, restored = counter(first, "updated_records"), counter(first, "restored_records")
        eventually(lambda: len(active(first)) == 4 and first.state is ClientState.RUNNING, "the first has taken over")
        assert read(first) == everything
        assert (standbys(first), counter(first, "restored_records")) == ({}, restored)
        assert sorted(heard.reasons[len(came) :]) == [(int(task[2:]), "PROMOTED") for task in promoted]

        with client(bootstrap, namespace, totals(namespace), folders[1], "i-1", tags=east, **spec) as second:
            second.start()
            until_running(second, 90)
            eventually(lambda: warm(first, second), "what was promoted is a standby again")
            assert active(second) == promoted
            assert counter(second, "restored_records") == 0
            assert read(first, stale=True) == everything
            # A standby that had been wiped would have begun at 0, and read all again.
            assert all(heard.starts[int(task[2:])] > 0 for task in promoted)
            assert counter(first, "updated_records") == updated
            # The brokers tell each instance where the others are, and every one says so of itself.
            found = tags_of(first.context.admin.group_members(namespace), ["example.com/zone"])
            assert found == {f"{namespace}-i-{n}": {"example.com/zone": ("west", "east")[n]} for n in (0, 1)}
            assert second.describe()["tags"] == {"example.com/zone": "east"}
    assert "kept apart" not in caplog.text
    assert [record.getMessage() for record in caplog.records if "wiped" in record.getMessage()] == []


@pytest.mark.parametrize(
    "lost", [["app-10"], ["app-1", "app-10"]], ids=["one instance without tags", "all instances of a zone"]
)
def test_the_group_gives_lost_members_tasks_to_whom_the_standbys_were_placed_on(
    broker: Any, namespace: str, lost: list[str]
) -> None:
    """The placement knows the broker's range assignor by heart; here the broker is asked."""
    properties = client_properties(broker.bootstrap_servers, {})
    make_topics(broker.bootstrap_servers, **{namespace: 7})
    admin = Admin(properties)
    store = StoreSpec("totals", "key-value", "changelog", False, "totals")
    topology = Topology(namespace, (SubTopology(0, (), (namespace,), (), (), (store,)),))
    tasks = stateful_tasks(topology, {namespace: 7})
    group: dict[str, GroupConsumer] = {}

    def settled() -> bool:
        for each in group.values():
            each.poll()
        members = admin.group_members(namespace)
        shares = [len(each.assignment) for each in members]
        # The first to come may have all of them for a while.
        return len(members) == len(group) and sum(shares) == 7 and max(shares) - min(shares) < 2

    try:
        for name in ("app-10", "app-2", "app-1", "app-3"):
            tags = {} if len(lost) == 1 else {"zone": "west" if name in lost else "east"}
            membership = Membership(namespace, f"{name}-1", tagged_client_id(name, "host:1", 1, tags))
            group[name] = GroupConsumer(properties, membership, lambda _: None, lambda _: None)
            group[name].subscribe({namespace})
        eventually(settled, "four members share the topic")
        before = admin.group_members(namespace)
        owners, placed = owners_of(before, tasks), place_standbys(before, tasks, 1, ["zone"])
        assert sorted(owners.values()) == sorted(["app-1", "app-10", "app-2"] * 2 + ["app-3"])
        for name in lost:
            group.pop(name).close()
        eventually(settled, "the others share the topic")
        after = owners_of(admin.group_members(namespace), tasks)
        assert all(placed[task] == (after[task],) for task, owner in owners.items() if owner in lost)
    finally:
        for each in group.values():
            each.close()
        admin.close()


def until_done_together(clients: list[StreamsClient], topic: str) -> None:
    """Wait until the clients have committed all of a topic between them."""

    def done() -> bool:
        ends = clients[0].context.admin.end_offsets([TopicPartition(topic, number) for number in range(4)])
        positions = {each: at for made in clients for thread in made.threads for each, at in thread.positions.items()}
        return positions == ends

    eventually(done, f"nothing left to process in {topic}")
