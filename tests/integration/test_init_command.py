"""`streamsapp init`, and manual set-up in `streamsapp run`, on a real broker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from clients import send
from topic_apps import TopicApp, delete
from typer.testing import CliRunner

from streams_runtime.cli.main import app as streamsapp
from streams_runtime.kafka.admin.kafka_admin import Admin

pytestmark = pytest.mark.integration


@pytest.fixture
def app(namespace: str, admin: Admin) -> TopicApp:
    """Its users' topics are there, its internal topics are not."""
    made = TopicApp(namespace, admin.address, setup="manual")
    made.make_users_topics(admin)
    return made


def init(app: TopicApp, folder: Path, *options: str) -> Result:
    return CliRunner().invoke(streamsapp, ["init", str(app.write(folder / "app.yaml")), *options])


def test_it_makes_all_topics_once_and_says_what_it_made(app: TopicApp, admin: Admin, tmp_path: Path) -> None:
    first = init(app, tmp_path)
    assert first.exit_code == 0, first.output
    assert all(f"{name}: created" in first.stdout for name in app.internal)
    assert app.present(admin) == set(app.internal)
    second = init(app, tmp_path)
    assert second.exit_code == 0
    assert all(f"{name}: exists" in second.stdout for name in app.internal)
    assert "created" not in second.stdout


def test_a_dry_run_makes_nothing_and_says_what_would_be_made(app: TopicApp, admin: Admin, tmp_path: Path) -> None:
    said = init(app, tmp_path, "--dry-run")
    assert said.exit_code == 0, said.output
    assert all(f"{name}: would be created" in said.stdout for name in app.internal)
    assert app.present(admin) == set()


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_an_incomplete_set_is_refused_with_what_is_missing_and_how_to_allow_it(
    app: TopicApp, admin: Admin, tmp_path: Path, dry: tuple[str, ...]
) -> None:
    init(app, tmp_path)
    delete(admin, [app.changelog])
    said = init(app, tmp_path, "--setup-repartition-topics-if-incomplete", *dry)
    assert said.exit_code == 1
    assert f"{app.changelog}: missing" in said.stdout
    assert f"{app.repartition}: exists" in said.stdout
    assert ("init would raise MissingInternalTopicException" in said.stdout) is bool(dry)
    assert "--setup-changelog-topics-if-incomplete" in said.stderr
    assert app.present(admin) == {app.repartition}
    for option in ("--setup-changelog-topics-if-incomplete", "--setup-internal-topics-if-incomplete"):
        allowed = init(app, tmp_path, option, *dry)
        assert allowed.exit_code == 0, allowed.output
    assert app.present(admin) == ({app.repartition} if dry else set(app.internal))


def test_json_is_one_object_a_line(app: TopicApp, admin: Admin, tmp_path: Path) -> None:
    told = [json.loads(line) for line in init(app, tmp_path, "--output", "json").stdout.splitlines()]
    assert told == [
        {
            "name": "app",
            "bootstrapServers": admin.address,
            "dryRun": False,
            "result": "Created",
            "created": list(app.internal),
            "existing": [],
            "tasks": 6,
        }
    ]
    delete(admin, [app.changelog])
    topics, error = (json.loads(line) for line in init(app, tmp_path, "--output", "json").stdout.splitlines())
    assert topics == {"topics": {app.repartition: "exists", app.changelog: "missing"}}
    assert error["error"] == "MissingInternalTopicException"
    assert app.changelog in error["message"]


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_source_that_is_missing_is_named_and_nothing_is_made(
    namespace: str, admin: Admin, tmp_path: Path, dry: tuple[str, ...]
) -> None:
    app = TopicApp(namespace, admin.address)
    said = init(app, tmp_path, *dry)
    assert said.exit_code == 1
    assert f"{app.source} (spec.topology.sources[0].topic)" in said.stderr
    assert app.present(admin) == set()


def test_the_option_s_brokers_win_and_without_any_address_it_says_so(
    app: TopicApp, namespace: str, admin: Admin, tmp_path: Path
) -> None:
    nowhere = TopicApp(namespace, None)
    said = init(nowhere, tmp_path)
    assert said.exit_code == 2
    assert "spec.kafka.bootstrapServers" in said.stderr
    assert init(nowhere, tmp_path, "--bootstrap-servers", admin.address).exit_code == 0
    assert app.present(admin) == set(app.internal)


def test_mistakes_in_the_file_are_listed_and_a_secret_is_refused_by_its_field(
    app: TopicApp, admin: Admin, tmp_path: Path
) -> None:
    app.document["spec"]["kafka"]["secretRef"] = {"name": "hidden"}
    said = init(app, tmp_path)
    assert said.exit_code == 1
    assert "spec.kafka.secretRef" in said.stdout
    assert app.present(admin) == set()
    app.document["spec"]["internalTopics"] = {"setup": "manuel"}
    said = init(app, tmp_path)
    assert said.exit_code == 1
    assert "'automatic' or 'manual'" in said.stdout


def run(app: TopicApp, folder: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """`streamsapp run` until the orders are counted; its exit code and events."""
    command = [str(Path(sys.executable).with_name("streamsapp")), "run", str(app.write(folder / "app.yaml"))]
    options = ("--instances", "1", "--until-caught-up", "--state-dir", str(folder / "state"), *options)
    ended = subprocess.run(
        [*command, *options, "--output", "json"], capture_output=True, text=True, timeout=280, check=False
    )
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]


def event(events: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((each for each in events if each["event"] == name), None)


def test_a_run_with_manual_set_up_does_the_file_s_init_before_any_instance_starts(
    app: TopicApp, admin: Admin, tmp_path: Path
) -> None:
    send(admin.address, app.source, [(None, {"user": "ada", "amount": 1.0})])
    app.document["spec"]["internalTopics"]["init"] = {"nonce": 1}
    code, events = run(app, tmp_path, "--bootstrap-servers", admin.address)
    assert code == 0, events
    told = event(events, "init")
    assert told is not None
    assert (told["result"], told["created"]) == ("Created", list(app.internal))
    assert app.present(admin) == set(app.internal)


def test_a_run_with_manual_set_up_and_no_init_says_what_is_missing_and_starts_nothing(
    app: TopicApp, admin: Admin, tmp_path: Path
) -> None:
    code, events = run(app, tmp_path, "--bootstrap-servers", admin.address)
    assert code == 1
    error = event(events, "error")
    assert error is not None
    assert error["class"] == "MissingInternalTopicException"
    assert all(name in error["message"] for name in app.internal)
    assert "spec.internalTopics.init: {nonce: 1}" in error["message"]
    assert event(events, "state") is None
    assert app.present(admin) == set()


def test_a_run_whose_init_does_not_allow_an_incomplete_set_starts_nothing(
    app: TopicApp, admin: Admin, tmp_path: Path
) -> None:
    init(app, tmp_path)
    delete(admin, [app.changelog])
    app.document["spec"]["internalTopics"]["init"] = {"nonce": 2, "setupRepartitionTopicsIfIncomplete": True}
    code, events = run(app, tmp_path, "--bootstrap-servers", admin.address)
    assert code == 1
    error = event(events, "error")
    assert error is not None
    assert "setupChangelogTopicsIfIncomplete: true" in error["message"]
    assert app.present(admin) == {app.repartition}
