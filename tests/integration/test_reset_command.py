"""`streamsapp reset` on real brokers: what it prints, does and refuses, with the stores of local runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from clients import send
from confluent_kafka import Consumer
from topic_apps import TopicApp
from typer.testing import CliRunner
from waiting import eventually

from streams_runtime.cli.main import app as streamsapp
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.topics.application_topics import ApplicationTopics

pytestmark = pytest.mark.integration


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    found = Admin(client_properties(broker.bootstrap_servers, {}))
    yield found
    found.close()


def processed(admin: Admin, namespace: str, bootstrap: str | None = None) -> TopicApp:
    """An application that has read its source, as the brokers see it: two partitions of ten records each."""
    app = TopicApp(namespace, bootstrap)
    app.make_users_topics(admin, partitions=2)
    for number in range(2):
        send(admin.address, app.source, [(None, {"user": "u", "amount": 1.0})] * 10, number)
    opened = ApplicationTopics(app.resource, bootstrap_servers=admin.address)
    opened.setup()
    opened.close()
    send(admin.address, app.changelog, [("u", {"n": 20})])
    admin.move_offsets(namespace, {TopicPartition(app.source, n): 10 for n in range(2)}, admin.topic_ids([app.source]))
    return app


def reset(file: Path, *options: object) -> Result:
    return CliRunner().invoke(streamsapp, ["reset", str(file), *map(str, options)])


def committed(app: TopicApp, admin: Admin) -> list[int | None]:
    partitions = [TopicPartition(app.source, number) for number in range(2)]
    found = admin.committed_offsets(app.resource.application_id, partitions)
    return [found.get(each) for each in partitions]


def stores(folder: Path, app: TopicApp, instance: str = "app-0") -> Path:
    """A file as RocksDB would have it in the folder of a local run."""
    file = folder / instance / app.resource.application_id / "1_0" / "rocksdb" / "totals" / "CURRENT"
    file.parent.mkdir(parents=True)
    file.touch()
    return file


def test_a_dry_run_prints_what_would_go_and_the_command_does_that_as_often_as_it_is_called(
    admin: Admin, namespace: str, tmp_path: Path
) -> None:
    app = processed(admin, namespace, admin.address)
    file, kept = app.write(tmp_path / "app.yaml"), stores(tmp_path / "state", app)
    ids = admin.topic_ids(app.internal)
    options = ("--to", "earliest", "--state-dir", tmp_path / "state")
    shown = reset(file, *options, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines() == [
        f"app at {admin.address}: would be reset; nothing was changed",
        f"  topic {app.repartition}: would be deleted and made anew",
        f"  topic {app.changelog}: would be deleted and made anew",
        f"  offset of {app.source}-0: 10 → 0",
        f"  offset of {app.source}-1: 10 → 0",
        f"  stores in {tmp_path / 'state' / 'app-0' / namespace}: would be deleted",
    ]
    assert (committed(app, admin), admin.topic_ids(app.internal), kept.exists()) == ([10, 10], ids, True)
    for before in (10, 0):
        done = reset(file, *options, "--output", "json")
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert [(each["before"], each["after"]) for each in told["offsets"]] == [(before, 0)] * 2
        assert committed(app, admin) == [0, 0]
        assert not set(admin.topic_ids(app.internal).values()) & set(ids.values())
        assert not kept.exists()
        ids = admin.topic_ids(app.internal)


def test_named_partitions_alone_are_set_and_kept_topics_and_stores_stay(
    admin: Admin, namespace: str, tmp_path: Path
) -> None:
    app = processed(admin, namespace, admin.address)
    file, kept = app.write(tmp_path / "app.yaml"), stores(tmp_path / "state", app)
    ids = admin.topic_ids(app.internal)
    done = reset(
        file, "--to", "orders/1=4", "--source", "orders", "--internal-topics", "keep", "--state-dir", tmp_path / "state"
    )
    assert done.stdout.splitlines() == [f"app at {admin.address}: reset", f"  offset of {app.source}-1: 10 → 4"]
    assert (committed(app, admin), admin.topic_ids(app.internal), kept.exists()) == ([10, 4], ids, True)


def test_it_is_refused_while_somebody_is_in_the_group_or_has_the_stores(
    admin: Admin, namespace: str, tmp_path: Path
) -> None:
    app = processed(admin, namespace, admin.address)
    file, kept = app.write(tmp_path / "app.yaml"), stores(tmp_path / "state", app)
    ids = admin.topic_ids(app.internal)
    with StateDirectory(tmp_path / "state" / "app-0", namespace, "app-0"):
        held = reset(file, "--to", "earliest", "--state-dir", tmp_path / "state")
        assert (held.exit_code, "is in use by process" in held.stderr) == (1, True), held.output
    member = Consumer({"bootstrap.servers": admin.address, "group.id": namespace, "client.id": "somebody"})
    member.subscribe([app.sink])
    try:
        eventually(lambda: member.poll(0.1) or admin.group_members(namespace), "it is a member")
        refused = reset(file, "--to", "earliest", "--wait", 1)
        assert refused.exit_code == 1
        assert f"waiting: the group {namespace} has members: somebody at" in refused.stderr
        assert f"refused: the group {namespace} has members: somebody at" in refused.stderr
        assert refused.stderr.endswith("nothing was changed\n")
    finally:
        member.close()
    assert (committed(app, admin), admin.topic_ids(app.internal), kept.exists()) == ([10, 10], ids, True)


IMPOSSIBLE: list[tuple[list[str], int, str]] = [
    (["--to", "orders/0=11"], 1, "has the offsets 0 to 10, and not 11"),
    (["--to", "2126-01-31T08:00:00Z"], 1, "is in the future"),
    (["--to", "earliest", "--source", "payments"], 1, "--source: 'payments' is no source"),
    (["--to", "payments/0=1"], 1, "--to: 'payments' is no source"),
    (["--to", "yesterday"], 2, "found 'yesterday'"),
    (["--to", "earliest", "--to", "orders/0=1"], 2, "given several times"),
    ([], 2, "Missing option '--to'"),
    (["--to", "earliest", "--state-dir", "/nowhere"], 2, "there is no folder /nowhere"),
]


def test_what_can_t_be_done_is_said_and_nothing_is_changed(admin: Admin, namespace: str, tmp_path: Path) -> None:
    app = processed(admin, namespace, admin.address)
    file, ids = app.write(tmp_path / "app.yaml"), admin.topic_ids(app.internal)
    for options, code, said in IMPOSSIBLE:
        done = reset(file, *options)
        assert done.exit_code == code, done.output
        assert said in " ".join(done.output.replace("│", " ").split()), done.output
    assert (committed(app, admin), admin.topic_ids(app.internal)) == ([10, 10], ids)


def test_runs_with_a_broker_of_their_own_are_reset_by_their_folder(namespace: str, tmp_path: Path) -> None:
    def seen() -> Iterator[Admin]:
        with EmbeddedBroker(tmp_path / "broker") as running:
            found = Admin(client_properties(running.bootstrap_servers, {}))
            yield found
            found.close()

    for admin in seen():
        app = processed(admin, namespace)
    kept = stores(tmp_path, app)
    done = reset(app.write(tmp_path / "app.yaml"), "--to", "latest", "--state-dir", tmp_path)
    assert done.exit_code == 0, done.output
    assert not kept.exists()
    for admin in seen():
        assert committed(app, admin) == [10, 10]
        ends = admin.end_offsets([TopicPartition(app.changelog, number) for number in range(2)])
        assert set(ends.values()) == {0}, "the changelog is empty"
