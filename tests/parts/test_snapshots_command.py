"""`streamsapp snapshots list|verify|prune` over a folder with real snapshots."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from operator_world import resource
from snapshot_kit import contents_at, folder_of
from typer.testing import CliRunner, Result

from streams_runtime.cli.main import app
from streams_runtime.snapshots.bucket import Bucket, open_bucket
from streams_runtime.snapshots.manifest import StoreKey
from streams_runtime.snapshots.snapshot_writer import SnapshotWriter
from streams_runtime.snapshots.throttle import Throttle

NAME = "orders"
FILES = {"000001.sst": b"a" * 1000, "MANIFEST-1": b"m"}


class Stage:
    """An application's file, and the folder that is its bucket."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "bucket"
        self.url = f"file://{self.root}"
        self.file = folder / "application.yaml"
        self.bucket: Bucket = open_bucket(self.url, {})
        self._work = folder / "work"
        self.write({"snapshots": {"url": self.url, "keep": 2}})

    def write(self, state: dict[str, Any]) -> None:
        self.file.write_text(yaml.safe_dump(resource({"state": state})))

    def publish(self, store: str = "totals", partition: int = 0, *offsets: int, application: str = NAME) -> None:
        """A snapshot at each offset: one file for all, and one of its own."""
        writer = SnapshotWriter(
            self.bucket, StoreKey(application, store, partition), "orders-0", Throttle(float("inf"))
        )
        for offset in offsets:
            own = {f"{offset:06d}.sst": str(offset).encode() * 10}
            writer.publish(folder_of(self._work, FILES | own), contents_at(offset, as_of=offset), lambda: False)

    def run(self, *words: str, code: int = 0) -> Result:
        verb, *options = words
        result = CliRunner().invoke(app, ["snapshots", verb, str(self.file), *options])
        assert result.exit_code == code, result.output
        return result

    def json(self, *words: str, code: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(*words, "--output", "json", code=code).stdout.splitlines()]

    def objects(self, part: str = "") -> list[Path]:
        return sorted(each for each in self.root.rglob("*") if each.is_file() and part in str(each))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_list_shows_task_store_age_offset_and_size_newest_first(stage: Stage) -> None:
    stage.publish("totals", 0, 10, 20)
    stage.publish("users", 3, 5)
    header, *rows = stage.run("list").stdout.splitlines()
    assert header.split() == ["TASK", "STORE", "NUMBER", "AGE", "OFFSET", "FILES", "SIZE", "STATE"]
    found = [re.split(r"\s{2,}", row) for row in rows]
    assert [[row[index] for index in (0, 1, 2, 4, 5, 7)] for row in found] == [
        ["0_3", "totals-0", "2", "20", "3", "whole"],
        ["0_3", "totals-0", "1", "10", "3", "whole"],
        ["0_3", "users-3", "1", "5", "3", "whole"],
    ]
    assert found[0][6] == "1021 B"


def test_a_list_as_json_has_a_snapshot_a_line(stage: Stage) -> None:
    stage.publish("totals", 0, 10)
    (found,) = stage.json("list")
    assert found.pop("ageSeconds") > 0
    assert found.pop("writer").startswith("orders-0")
    assert found == {
        "task": "0_3",
        "store": "totals",
        "partition": 0,
        "number": 1,
        "created": "1970-01-01T00:00:00.010000+00:00",
        "changelog": "app-totals-changelog",
        "topicId": "topic-1",
        "offset": 10,
        "files": 3,
        "bytes": 1021,
        "state": "whole",
        "reasons": [],
    }


def test_a_bucket_without_snapshots_is_listed_as_such(stage: Stage) -> None:
    assert stage.run("list").stdout == f"no snapshots in {stage.url}\n"
    assert stage.json("list") == []
    assert stage.run("verify").stdout == f"0 snapshots in {stage.url} are whole\n"


def test_another_application_s_snapshots_are_none_of_its_own(stage: Stage) -> None:
    stage.publish("totals", 0, 10, application="other")
    assert stage.json("list") == []
    stage.run("prune", "--keep", "1")
    assert len(stage.objects("manifests")) == 1


def missing(file: Path) -> None:
    file.unlink()


def short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def changed(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[0] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "says"), [(missing, "it is not there"), (short, "it has 19 bytes, and the manifest says 20")]
)
def test_a_file_that_is_missing_or_short_is_named_without_reading_any(
    stage: Stage, damage: Callable[[Path], None], says: str
) -> None:
    stage.publish("totals", 0, 10, 20)
    (file,) = (each for each in stage.objects("files") if each.read_bytes().startswith(b"2020"))
    damage(file)
    path = str(file.relative_to(stage.root))
    output = stage.run("verify", code=1).stdout
    assert f"{path}: {says} (snapshot 2 of totals-0)" in output
    assert "1 snapshots are not whole: none of them is used" in output
    *findings, summary = stage.json("verify", code=1)
    assert findings == [{"store": "totals", "partition": 0, "number": 2, "path": path, "reason": says}]
    assert summary == {"url": stage.url, "snapshots": 2, "damaged": 1}
    assert [(each["number"], each["state"]) for each in stage.json("list")] == [(2, "damaged"), (1, "whole")]


def test_a_file_with_other_contents_of_the_same_size_is_found_by_reading_it(stage: Stage) -> None:
    stage.publish("totals", 0, 10, 20)
    (shared,) = (each for each in stage.objects("files") if each.read_bytes() == FILES["000001.sst"])
    changed(shared)
    assert "2 snapshots" in stage.run("verify").stdout
    output = stage.run("verify", "--full", code=1).stdout
    assert output.count("another checksum: it is damaged") == 2, "both snapshots have the file"
    assert "2 snapshots are not whole" in output


def test_a_manifest_that_is_damaged_is_named_and_listed_behind_the_others(stage: Stage) -> None:
    stage.publish("totals", 0, 10, 20)
    newest = stage.objects("manifests")[-1]
    changed(newest)
    assert str(newest.relative_to(stage.root)) in stage.run("verify", code=1).stdout
    rows = stage.run("list").stdout.splitlines()
    assert rows[1].split()[-1] == "whole"
    assert rows[2].split()[1:3] == ["totals-0", "2"]
    assert rows[2].split()[-1] == "unreadable"
    assert [(each["number"], each["state"]) for each in stage.json("list")] == [(1, "whole"), (2, "unreadable")]


def test_pruning_leaves_what_the_newest_name_and_a_dry_run_leaves_all(stage: Stage) -> None:
    stage.publish("totals", 0, 10, 20, 30)
    before = stage.objects()
    (would,) = stage.json("prune", "--dry-run")
    assert stage.objects() == before
    assert "would be deleted; nothing was changed" in stage.run("prune", "--dry-run").stdout
    (done,) = stage.json("prune")
    assert (
        done
        == {**would, "dryRun": False}
        == {
            "url": stage.url,
            "keep": 2,
            "dryRun": False,
            "manifests": 1,
            "files": 1,
        }
    )
    assert [each["number"] for each in stage.json("list")] == [3, 2]
    stage.run("verify", "--full")
    (again,) = stage.json("prune")
    assert (again["manifests"], again["files"]) == (0, 0)


def test_how_many_stay_may_be_said_and_is_at_least_one(stage: Stage) -> None:
    stage.publish("totals", 0, 10, 20, 30)
    assert "the newest 1 of each store stay" in stage.run("prune", "--keep", "1").stdout
    assert [each["number"] for each in stage.json("list")] == [3]
    stage.run("verify", "--full")
    assert "--keep" in stage.run("prune", "--keep", "0", code=2).output


@pytest.mark.parametrize("verb", ["list", "verify", "prune"])
def test_an_application_without_snapshots_is_refused_by_the_field(stage: Stage, verb: str) -> None:
    stage.write({})
    assert "spec.state.snapshots: is missing, so there are no snapshots" in stage.run(verb, code=1).output


@pytest.mark.parametrize("verb", ["list", "verify", "prune"])
def test_mistakes_of_the_file_are_listed(stage: Stage, verb: str) -> None:
    stage.write({"snapshots": {"url": "ftp://x"}})
    (found,) = stage.json(verb, code=1)
    assert found["path"] == "spec.state.snapshots.url"


def test_a_secret_needs_its_variables_in_the_environment(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    stage.write({"snapshots": {"url": "az://box/a", "secretRef": {"name": "shop"}}})
    (found,) = stage.json("list", code=1)
    assert found["path"] == "spec.state.snapshots.secretRef"
    assert "AZURE_" in found["remedy"]


@pytest.mark.parametrize("verb", ["list", "verify", "prune"])
def test_a_bucket_that_cannot_be_read_ends_with_2_and_its_url(stage: Stage, verb: str) -> None:
    stage.root.rmdir()
    stage.root.write_bytes(b"a file, and no folder")
    result = stage.run(verb, code=2)
    assert "error: " in result.output
    assert stage.url in result.output
    assert stage.json(verb, code=2)[0]["error"] == "BucketException"
