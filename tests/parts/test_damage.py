"""Damaged files of a store: told apart from space and rights, set aside, and replaced by an empty store."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from state_kit import contents, memory_folder

from streams_runtime.errors import ProcessorStateException, TaskCorruptedException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processing.global_tables import open_global_store
from streams_runtime.state.database.damaged_files import DAMAGED, DamagedFolders, is_damage
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store import KeyValueStore, Updates
from streams_runtime.tasks.task_stores import close_stores, damage_of, open_stores, set_damaged_aside
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, TableSourceNode
from streams_runtime.topology.plan import SubTopology, TaskId
from streams_runtime.topology.store_specs import StoreSpec

TASK = TaskId(0, 1)
SUB = SubTopology(
    0,
    (),
    ("orders",),
    (),
    (),
    (
        StoreSpec("totals", "key-value", "app-totals-changelog", False, "totals"),
        StoreSpec("users", "key-value", "users", True, "users"),
    ),
)
KEYS = [b"%05d" % number for number in range(3000)]


def sst(folder: Path) -> Path:
    """The largest file of data."""
    return max(folder.glob("*.sst"), key=lambda file: file.stat().st_size)


def garble(file: Path, start: int, length: int) -> None:
    contents = bytearray(file.read_bytes())
    contents[start : start + length] = bytes(each ^ 0xFF for each in contents[start : start + length])
    file.write_bytes(contents)


def manifest(folder: Path) -> Path:
    return next(folder.glob("MANIFEST-*"))


SHOWS_WHEN_OPENED: dict[str, Callable[[Path], object]] = {
    "truncated SST": lambda folder: os.truncate(sst(folder), sst(folder).stat().st_size // 2),
    "empty SST": lambda folder: os.truncate(sst(folder), 0),
    "lost SST": lambda folder: sst(folder).unlink(),
    "garbage MANIFEST": lambda folder: manifest(folder).write_bytes(b"garbage" * 99),
    "lost MANIFEST": lambda folder: manifest(folder).unlink(),
    "garbage CURRENT": lambda folder: (folder / "CURRENT").write_bytes(b"garbage\n"),
    "empty CURRENT": lambda folder: (folder / "CURRENT").write_bytes(b""),
}


@pytest.fixture
def directory() -> Iterator[StateDirectory]:
    """A state folder with two stores of 3000 keys; each name of a folder in quarantine is a second later."""
    times = iter(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) + timedelta(seconds=each) for each in range(99))
    with memory_folder() as base:
        made = StateDirectory(base, "app", "test", lambda: next(times))
        stores = open_stores(SUB, TASK, made)
        for each in stores.values():
            each.write(Updates(KEYS, [os.urandom(60) for _ in KEYS], [1] * len(KEYS)), 3000)
        close_stores(stores)
        yield made


@pytest.mark.parametrize("damage", SHOWS_WHEN_OPENED)
def test_a_store_that_can_not_be_opened_for_damage_is_set_aside_and_made_anew_and_no_other_is_touched(
    directory: StateDirectory, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = directory.store_folder(TASK, "totals")
    SHOWS_WHEN_OPENED[damage](folder)
    left = sorted(file.name for file in folder.glob("*.sst"))
    stores = open_stores(SUB, TASK, directory)
    try:
        assert (contents(stores["totals"]), stores["totals"].offset()) == ({}, None)  # type: ignore[arg-type]
        assert (len(contents(stores["users"])), stores["users"].offset()) == (3000, 3000)  # type: ignore[arg-type]
    finally:
        close_stores(stores)
    place = directory.root / "quarantine" / "20260102T030405.000000Z-0_1-totals"
    assert sorted(file.name for file in place.glob("*.sst")) == left
    assert directory.quarantined == 1
    (said,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert str(place) in said.getMessage()
    assert "store totals of task 0_1" in said.getMessage()


def test_damage_that_shows_when_it_is_read_is_an_error_for_every_reader_and_never_a_shorter_answer(
    directory: StateDirectory,
) -> None:
    folder = directory.store_folder(TASK, "totals")
    garble(sst(folder), 60_000, 200)
    stores = open_stores(SUB, TASK, directory)
    store = stores["totals"]
    assert isinstance(store, KeyValueStore)
    assert damage_of(stores.values()) == {}
    for read in (lambda: contents(store), lambda: list(store.scan(None, None, reverse=True))):
        with pytest.raises(TaskCorruptedException, match="totals can't be read, its files are damaged: Corruption"):
            read()
    with pytest.raises(TaskCorruptedException):
        store.get_stored(KEYS)
    assert list(damage_of(stores.values())) == [folder]
    close_stores(stores)
    set_damaged_aside(stores, directory)
    assert damage_of(stores.values()) == {}
    stores = open_stores(SUB, TASK, directory)
    assert [store.offset() for store in stores.values()] == [None, 3000]
    close_stores(stores)


def test_damage_that_a_reader_found_is_remembered_when_the_store_is_opened_again(directory: StateDirectory) -> None:
    folder = directory.store_folder(TASK, "totals")
    DAMAGED.note(folder, "Corruption: block")
    stores = open_stores(SUB, TASK, directory)
    assert stores["totals"].offset() is None
    close_stores(stores)
    assert directory.quarantined == 1


def test_the_newest_three_damaged_stores_are_kept(directory: StateDirectory) -> None:
    folder = directory.store_folder(TASK, "totals")
    places = []
    for number in range(5):
        folder.mkdir(exist_ok=True)
        (folder / "number").write_text(str(number))
        places.append(directory.quarantine(folder, "Corruption"))
    assert [place.exists() for place in places] == [False, False, True, True, True]
    assert (places[-1] / "number").read_text() == "4"


@pytest.mark.parametrize("offset", [b"\xff" * 8, b"\x00\x01", b""])
def test_a_checkpoint_that_is_no_offset_counts_as_none(
    directory: StateDirectory, offset: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka Streams' shouldSkipInvalidOffsetsDuringRead."""
    store = KeyValueStore("totals", TopicPartition("log", 1), directory.store_folder(TASK, "totals"))
    store._database._offsets[b"changelog"] = offset
    assert store.offset() is None
    store.close()
    assert "which is no offset" in caplog.text


def test_space_rights_and_locks_are_no_damage() -> None:
    folder = Path("/state/totals")
    for reason in (
        "IO error: No space left on device: While appending to file: /state/totals/000012.sst: No space left on device",
        "IO error: While open a file for random read: /state/totals/000012.sst: Permission denied",
        "IO error: lock hold by current process: /state/totals/LOCK: No locks available",
        "IO error: While fsync: /state/totals/MANIFEST-000004: Input/output error",
        "IO error: No such file or directory: /state/totals.bulk/x/000000.sst: No such file or directory",
        "File exists (os error 17)",
    ):
        assert not is_damage(reason, folder), reason


def test_a_folder_that_is_in_the_way_of_a_store_is_not_taken_for_a_damaged_one(directory: StateDirectory) -> None:
    folder = directory.store_folder(TaskId(0, 2), "totals")
    folder.write_text("no folder")
    with pytest.raises(ProcessorStateException, match="totals can't be opened"):
        open_stores(SUB, TaskId(0, 2), directory)
    assert folder.read_text() == "no folder"
    assert directory.quarantined == 0


def test_damage_below_a_folder_is_the_folders() -> None:
    found = DamagedFolders()
    found.note(Path("/s/a/deep"), "why")
    assert found.of([Path("/s/a"), Path("/s/ab"), Path("/s")]) == {Path("/s/a"): "why", Path("/s"): "why"}
    found.forget(Path("/s/a"))
    assert found.of([Path("/s/a")]) == {}


def test_a_damaged_global_store_is_set_aside_by_the_next_who_opens_it(directory: StateDirectory) -> None:
    source = TableSourceNode("users", "users", Format("string"), Format("string"), None, "users", "sources[0]")
    spec = StoreSpec("users", "key-value", "users", True, "users", global_=True)
    sub = SubTopology(1, (source,), ("users",), (), (), (spec,))
    store = open_global_store(sub, directory)
    store.write_through(Updates([b"a"], [b"1"], [1]), {0: 1})
    assert store.folder == directory.root / "global" / "rocksdb" / "users"
    DAMAGED.note(store.folder, "Corruption")
    store.close()
    anew = open_global_store(sub, directory)
    assert (anew.is_empty(), anew.offsets(), directory.quarantined) == (True, {}, 1)
    anew.close()
    assert [each.name.endswith("-global-users") for each in (directory.root / "quarantine").iterdir()] == [True]
