"""A disk that is full or read-only: an error that says so, and nothing lost or mixed up once there is space again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import disk_scenarios
import pytest


def played(scenario: str, folder: Path) -> dict[str, Any]:
    """What the scenario saw on a small disk of its own; the mount exists in the child process only."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk in a namespace of its own (unshare --mount) needs root")
    command = ["unshare", "--mount", sys.executable, disk_scenarios.__file__, scenario, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    assert list(folder.iterdir()) == []
    seen: dict[str, Any] = json.loads(run.stdout)
    return seen


def test_a_full_disk_stops_the_write_and_data_and_offset_agree_before_and_after(tmp_path: Path) -> None:
    seen = played("full-store", tmp_path)
    last = seen["refused_at"] - 1
    assert last > 0
    name, message = seen["error"]
    assert name == "ProcessorStateException"
    assert "No space left on device" in message
    assert "Check the disk's free space" in message
    assert seen["while_full"] == [[last], last]
    assert seen["reopened"] == [[last], last]
    assert seen["written_afterwards"] == [[5000], 5000]


def test_a_store_that_could_not_be_made_for_lack_of_space_is_made_later(tmp_path: Path) -> None:
    seen = played("full-open", tmp_path)
    name, message = seen["error"]
    assert (name, "No space left on device" in message) == ("ProcessorStateException", True)
    assert seen["written_afterwards"] == [[1], 1]


def test_a_bulk_file_that_does_not_fit_harms_nothing(tmp_path: Path) -> None:
    seen = played("full-bulk", tmp_path)
    name, message = seen["error"]
    assert (name, "No space left on device" in message) == ("ProcessorStateException", True)
    assert seen["afterwards"] == [[7], 7]


def test_a_full_disk_refuses_the_state_folder_and_gives_it_later(tmp_path: Path) -> None:
    seen = played("full-lock", tmp_path)
    name, message = seen["error"]
    assert name == "ProcessorStateException"
    assert f"state folder {tmp_path}/app can't be used: No space left on device" in message
    assert seen["afterwards"] is None


def test_a_read_only_disk_is_an_error_everywhere_and_harms_nothing(tmp_path: Path) -> None:
    seen = played("read-only", tmp_path)
    for what in ("open", "lock", "folder", "remove"):
        name, message = seen[what]
        assert (what, name) == (what, "ProcessorStateException")
        assert "Read-only file system" in message
    assert seen["afterwards"] == [[7], 7]
