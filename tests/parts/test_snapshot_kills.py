"""A process that is killed while a store begins with a snapshot: the next one has all that the changelog has."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from snapshot_stage import LOG, Stage, staged
from state_kit import contents, key_value_store

from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store import KeyValueStore, Updates
from streams_runtime.tasks.task_stores import open_sound

STALE = [b"stale-%03d" % number for number in range(300)]
_STEPS = ("unlink", "rmdir", "rename", "fsync", "mkdir")


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


def hold(stage: Stage, offset: int, topic_id: str) -> None:
    """Something that the store can't go on from, on the disk and in the write-ahead log."""
    for keys in (STALE[:200], STALE[200:]):
        stage.store.write(Updates(keys, [b"stale"] * len(keys), [7] * len(keys)), offset)
        stage.store.follow(topic_id, offset)
        stage.store.close()
        stage.store._open()
    stage.store.write(Updates(STALE[:1], [b"in the log"], [7]), offset)


def late_log(stage: Stage) -> None:
    hold(stage, 100, "id")
    stage.brokers.start, stage.brokers.records = 500, stage.brokers.records


def garble(folder: Path) -> None:
    """Change bytes of the data of the largest file, of which no other test has a hard link."""
    file = max(folder.glob("*.sst"), key=lambda each: each.stat().st_size)
    body = file.read_bytes()
    file.write_bytes(body[:100] + bytes(each ^ 0xFF for each in body[100:400]) + body[400:])


BEFORE: dict[str, Callable[[Stage], None]] = {
    "nothing": lambda _: None,
    "another topic's": lambda stage: hold(stage, 400, "an earlier one"),
    "more than the log has": lambda stage: hold(stage, 2000, "id"),
    "older than the log's beginning": late_log,
}


@contextmanager
def images_of(folder: Path, images: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The folder as it is before each step that changes it: what a process leaves that is killed there."""
    taken: list[Path] = []
    lock = threading.Lock()
    in_one = threading.local()

    def wrapped(step: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*args: Any, **options: Any) -> Any:
            if getattr(in_one, "copies", False):
                return step(*args, **options)
            with lock:
                in_one.copies = True
                try:
                    taken.append(images / f"{len(taken):03d}")
                    shutil.copytree(folder, taken[-1], ignore_dangling_symlinks=True)
                finally:
                    in_one.copies = False
                return step(*args, **options)

        return stepping

    with monkeypatch.context() as patched:
        for name in _STEPS:
            patched.setattr(os, name, wrapped(getattr(os, name)))
        yield taken


@pytest.mark.parametrize("before", BEFORE)
def test_a_kill_at_any_step_of_beginning_with_a_snapshot_leaves_what_the_next_process_restores(
    stage: Stage, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    BEFORE[before](stage)
    with images_of(stage.folder / "here", stage.folder / "images", monkeypatch) as images:
        stage.restore()
    assert stage.began_with_snapshot
    assert len(images) > 10
    expected = {record.k: record.v for record in stage.brokers.records}
    for image in images:
        next_process = StateDirectory(image.parent, f"{image.name}-state", "test")
        next_process.root.mkdir()
        shutil.rmtree(image / "downloads", ignore_errors=True)  # as remove_unfinished does
        folder = image / "rocksdb" / "totals-0"
        folder.parent.mkdir(parents=True, exist_ok=True)
        stage.store = open_sound(folder, next_process, lambda at=folder: KeyValueStore("totals", LOG, at))  # type: ignore[misc]
        try:
            stage.begin_anew()
            stage.restore()
            found = contents(stage.store)
            found.pop(b"only in the snapshot", None)
            assert found == expected, image
            assert stage.store.offset() == len(stage.brokers.records)
            assert next_process.quarantined == 0, "a kill damages nothing"
        finally:
            stage.store.close()


def test_a_snapshot_of_damaged_files_is_begun_with_once_and_not_again(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Their checksums are right: the files were damaged when they went up."""
    stage.leave_snapshot(950, spoil=garble)
    stage.restore()
    assert stage.store.offset() == 1000
    with pytest.raises(Exception, match="Corruption"):
        contents(stage.store)
    directory = StateDirectory(stage.folder, "state", "test")
    directory.root.mkdir()
    stage.store.close()
    stage.store = open_sound(stage.store.folder, directory, lambda: KeyValueStore("totals", LOG, stage.store.folder))
    stage.begin_anew()
    stage.restore()
    assert contents(stage.store) == {record.k: record.v for record in stage.brokers.records}
    assert "may have the same damage" in caplog.text
    with key_value_store(stage.folder / "another" / "rocksdb") as other:
        stage.store = other
        stage.begin_anew()
        stage.restore()
        assert other.offset() == 1000, "stores without damage begin with snapshots"
