"""Snapshots of real stores: what a checkpoint holds, what goes up, and that a store of any kind comes back from it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from snapshot_kit import memory_bucket
from state_kit import contents, key_value_store, memory_folder

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.snapshots.bucket import Bucket, BucketException
from streams_runtime.snapshots.capture import BusyStoreException, checkpoint_folder, take_checkpoint
from streams_runtime.snapshots.manifest import Manifest, StoreKey
from streams_runtime.snapshots.manifest_chain import read_chain
from streams_runtime.snapshots.snapshot_catalogue import list_snapshots, verify
from streams_runtime.snapshots.snapshot_download import download
from streams_runtime.snapshots.snapshot_settings import SnapshotSettings
from streams_runtime.snapshots.snapshotter import Snapshotter
from streams_runtime.state.store import KeyValueStore, LocalStore, Updates
from streams_runtime.state.versioned_store import Version, VersionedStore
from streams_runtime.state.window_keys import SESSION_KEYS, WINDOW_KEYS
from streams_runtime.state.window_store import DedupeStore, JoinStore, SessionStore, WindowStore
from streams_runtime.topology.plan import TaskId

TASK = TaskId(0, 0)
LOG = TopicPartition("app-w-changelog", 0)
KINDS: list[Callable[[Path], LocalStore]] = [
    lambda folder: KeyValueStore("w", LOG, folder),
    lambda folder: WindowStore("w", LOG, folder, 10_000, 1_000),
    lambda folder: SessionStore("w", LOG, folder, 10_000, 1_000),
    lambda folder: JoinStore("w", LOG, folder, 10_000, 1_000),
    lambda folder: DedupeStore("w", LOG, folder, 10_000, 1_000),
    lambda folder: VersionedStore("w", LOG, folder, 10_000),
]


@dataclass
class Brokers:
    """Where changelogs end."""

    ends: dict[TopicPartition, int] = field(default_factory=dict)

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.ends[each] for each in partitions if each in self.ends}


class Stage:
    """A snapshotter over a bucket, with a clock that the test moves."""

    def __init__(self, bucket: Bucket) -> None:
        self.now, self.bucket, self.brokers = 1_000_000.0, bucket, Brokers()
        self.snapshotter = Snapshotter(
            "app", "one", SnapshotSettings("memory://", 60.0, 2), self.open, self.brokers, lambda: self.now, lambda: 0.0
        )

    def open(self) -> Bucket:
        return self.bucket

    def add(self, store: LocalStore) -> None:
        self.snapshotter.add(TASK, [store], lambda: {TopicPartition("orders", 0): 5})

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        while self.snapshotter.turn() <= 0:
            pass


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        yield made / "0_0" / "rocksdb"


@pytest.fixture
def stage() -> Stage:
    return Stage(memory_bucket())


def put(store: LocalStore, keys: Collection[bytes], offset: int, value: bytes = b"v", time: int = 5_000) -> None:
    store.write(Updates(list(keys), [value] * len(keys), [time] * len(keys)), offset)


def numbered(first: int, count: int) -> list[bytes]:
    return [b"%07d" % number for number in range(first, first + count)]


def newest(bucket: Bucket, store: LocalStore) -> Manifest:
    head = read_chain(bucket, StoreKey("app", store.name, store.partition), 1).head
    assert head is not None
    return head


def checkpoints_of(store: LocalStore) -> list[Path]:
    return list(store.folder.parent.parent.glob("checkpoints/*"))


def brought_back(bucket: Bucket, manifest: Manifest, store: LocalStore, staging: Path) -> None:
    download(bucket, manifest, staging, lambda _: None, lambda: False)
    store.adopt(staging)


def test_a_checkpoint_has_data_and_offset_of_one_moment_however_fast_the_store_is_written(folder: Path) -> None:
    with key_value_store(folder) as store:
        store.follow("id", 0)
        ending = threading.Event()

        def write() -> None:
            number = 0
            while not ending.wait(0.03):
                put(store, [b"count"], number + 1, b"%d" % (number + 1))
                put(store, numbered(number * 500, 500), number + 1)
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(5):
                taken = take_checkpoint(store, checkpoint_folder(store.folder))
                assert taken is not None
                copy = KeyValueStore("copy", store.changelog, taken.folder)
                assert (copy.get(b"count") or b"0") == b"%d" % (copy.offset() or 0)
                assert (copy.offset(), copy.topic_id()) == (taken.offset, "id")
                copy.close()
        finally:
            ending.set()
            writer.join()


def test_a_store_that_is_never_left_alone_is_not_stopped_for_a_checkpoint(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    with key_value_store(folder) as store:
        put(store, [b"a"], 1)
        monkeypatch.setattr(store, "flush_soon", lambda: None)  # something is in memory at every look
        with pytest.raises(BusyStoreException, match="without a pause for 20 s"):
            take_checkpoint(store, checkpoint_folder(store.folder), clock=lambda: now, sleep=sleep)
        assert checkpoints_of(store) == []


@pytest.mark.parametrize("made", KINDS, ids=["key-value", "window", "session", "join", "dedupe", "versioned"])
def test_a_store_of_any_kind_comes_back_with_all_that_it_had(
    made: Callable[[Path], LocalStore], folder: Path, stage: Stage
) -> None:
    store = made(folder / "w")
    keys = [b"%03d" % n + (5_000 + n).to_bytes(8, "big") + bytes(4) for n in range(900)]
    if isinstance(store, SessionStore):
        keys = [b"%03d" % n + (5_000 + n).to_bytes(8, "big") + (4_000 + n).to_bytes(8, "big") for n in range(900)]
    assert WINDOW_KEYS.suffix_bytes != SESSION_KEYS.suffix_bytes
    put(store, keys, 900)
    store.follow("id", 900)
    stage.brokers.ends[LOG] = 900
    stage.add(store)
    stage.pass_by(0)
    manifest = newest(stage.bucket, store)
    assert (manifest.offset, manifest.topic_id, manifest.inputs) == (900, "id", {"orders-0": 5})
    put(store, keys[:5], 950, b"later")
    other = made(folder.parent.parent / "other" / "w")
    brought_back(stage.bucket, manifest, other, folder.parent.parent / "other" / "download")
    assert (other.offset(), other.topic_id()) == (900, "id")
    assert [other.get(key) for key in keys] == [b"v"] * len(keys)
    put(other, keys[:1], 901, b"goes on")
    assert other.get(keys[0]) == b"goes on"
    other.close()
    again = made(folder.parent.parent / "other" / "w")
    assert (again.offset(), again.get(keys[0])) == (901, b"goes on")
    again.close()
    store.close()


def test_a_history_comes_back_too(folder: Path, stage: Stage) -> None:
    def made(at: Path) -> VersionedStore:
        return VersionedStore("w", LOG, at, 10_000)

    store, other = made(folder / "w"), made(folder.parent.parent / "other" / "w")
    store.write(Updates([b"a", b"a", b"b", b"b"], [b"1", b"2", b"3", None], [1_000, 2_000, 3_000, 4_000]), 4)
    store.follow("id", 4)
    stage.brokers.ends[LOG] = 4
    stage.add(store)
    stage.pass_by(0)
    brought_back(stage.bucket, newest(stage.bucket, store), other, folder.parent.parent / "other" / "download")
    assert other.stream_time == 4_000
    assert other.as_of(b"a", 1_500) == Version(b"1", 1_000, 2_000)
    assert other.as_of(b"b", 3_500) == Version(b"3", 3_000, 4_000)
    assert other.newest([b"b"]) == [Version(None, 4_000)]
    store.close()
    other.close()


def test_only_files_that_are_new_go_up(folder: Path, stage: Stage) -> None:
    with key_value_store(folder) as store:
        store.follow("id", 0)
        put(store, numbered(0, 50_000), 50_000, bytes(100))
        stage.brokers.ends[store.changelog] = 50_000
        stage.add(store)
        stage.pass_by(0)
        (account,) = stage.snapshotter.accounts
        first = stage.snapshotter.totals.uploaded
        put(store, numbered(60_000, 10), 50_010)
        stage.brokers.ends[store.changelog] = 50_010
        stage.pass_by(60)
        assert (stage.snapshotter.totals.made, account.offset) == (2, 50_010)
        assert first > 200_000
        assert stage.snapshotter.totals.uploaded - first < 40_000
        one, two = read_chain(stage.bucket, StoreKey("app", "totals", 0), 2).manifests
        assert {each.path for each in one.files} & {each.path for each in two.files}
        assert verify(stage.bucket, "app") == []
        assert [each.offset for each in list_snapshots(stage.bucket, "app")] == [50_010, 50_000]


def test_a_store_that_stands_still_is_published_again_after_an_hour_only(folder: Path, stage: Stage) -> None:
    with key_value_store(folder) as store:
        store.follow("id", 0)
        put(store, [b"a"], 1)
        stage.brokers.ends[store.changelog] = 2  # a transaction's marker follows the record
        stage.add(store)
        stage.pass_by(0)
        for _ in range(50):
            stage.pass_by(60)
        assert stage.snapshotter.totals.made == 1
        for _ in range(12):
            stage.pass_by(60)
        assert stage.snapshotter.totals.made == 2
        assert newest(stage.bucket, store).as_of >= int((1_000_000.0 + 3600) * 1000)


def test_a_snapshot_says_since_when_nothing_is_missing_in_it_and_waits_until_that_is_so(
    folder: Path, stage: Stage
) -> None:
    """A table's topic may be far ahead: a deletion in it is as old as that, whenever the store meets it."""
    with key_value_store(folder) as store:
        store.follow("id", 0)
        put(store, [b"a"], 10)
        stage.brokers.ends[store.changelog] = 100
        stage.add(store)
        for _ in range(3):
            stage.pass_by(30)
        assert stage.snapshotter.totals.made == 0
        stage.brokers.ends[store.changelog] = 5_000
        put(store, [b"a"], 100)
        stage.pass_by(30)
        assert stage.snapshotter.totals.made == 1
        manifest = newest(stage.bucket, store)
        assert (manifest.offset, manifest.as_of) == (100, int((1_000_000.0 + 30) * 1000))
        assert manifest.created > manifest.as_of


def test_a_bucket_that_fails_is_tried_again_ever_later_said_once_and_stops_nothing(
    folder: Path, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    def opening() -> Bucket:
        if down:
            raise BucketException(down[0])
        return stage.bucket

    down: list[str] = ["s3://b: nobody answers"]
    stage.snapshotter = Snapshotter(
        "app", "one", SnapshotSettings("s3://b", 60.0, 2), opening, stage.brokers, lambda: stage.now
    )
    with key_value_store(folder) as store:
        store.follow("id", 0)
        put(store, [b"a"], 1)
        stage.brokers.ends[store.changelog] = 1
        stage.add(store)
        stage.pass_by(60)
        waits = []
        for _ in range(4):
            waits.append(stage.snapshotter.turn())
            stage.pass_by(waits[-1])
        assert waits == [10.0, 20.0, 40.0, 80.0]
        assert stage.snapshotter.totals.failures == 5
        assert [each.levelname for each in caplog.records].count("WARNING") == 1
        assert "Processing goes on" in caplog.text
        assert "spec.state.snapshots" in caplog.text
        down.clear()
        stage.pass_by(600)
        assert stage.snapshotter.totals.made == 1
        assert checkpoints_of(store) == []


def test_a_bucket_that_overwrites_is_refused(folder: Path, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    class Overwrites(Bucket):
        def create(self, path: str, body: bytes) -> bool:
            self.write(path, [body])
            return True

    stage.bucket = Overwrites(memory_bucket()._store, "s3://old")
    with key_value_store(folder) as store:
        store.follow("id", 0)
        put(store, [b"a"], 1)
        stage.brokers.ends[store.changelog] = 1
        stage.add(store)
        stage.pass_by(0)
    assert "s3://old overwrites objects that must not be there yet (If-None-Match)" in caplog.text
    assert stage.bucket.sizes("app") == {}


def test_a_task_that_closes_has_its_snapshot_given_up_and_the_store_closed_at_once(folder: Path, stage: Stage) -> None:
    class Slow(Bucket):
        def write(self, path: str, chunks: object) -> None:
            stage.snapshotter.remove([TASK])
            store.close()
            super().write(path, chunks)  # type: ignore[arg-type]

    stage.bucket = Slow(memory_bucket()._store, "memory://")
    with key_value_store(folder) as store:
        store.follow("id", 0)
        put(store, [b"a"], 1)
        stage.brokers.ends[store.changelog] = 1
        stage.add(store)
        stage.pass_by(0)
        assert checkpoints_of(store) == []
    assert stage.snapshotter.accounts == []
    assert read_chain(stage.bucket, StoreKey("app", "totals", 0), 1).numbers == ()


def test_a_store_without_a_topic_id_has_no_snapshot_yet(folder: Path, stage: Stage) -> None:
    with key_value_store(folder) as store:
        put(store, [b"a"], 1)
        stage.brokers.ends[store.changelog] = 1
        stage.add(store)
        stage.pass_by(10)
        assert (stage.snapshotter.totals.made, stage.snapshotter.totals.failures) == (0, 0)


def test_files_that_can_not_be_opened_leave_a_store_that_can_be_started_empty(folder: Path, tmp_path: Path) -> None:
    broken = folder.parent / "broken"
    with key_value_store(folder) as store:
        put(store, [b"a"], 1)
        (taken,) = [take_checkpoint(store, checkpoint_folder(store.folder))]
        assert taken is not None
        shutil.copytree(taken.folder, broken)
        (broken / "CURRENT").write_bytes(b"MANIFEST-999999\n")
        with pytest.raises(Exception, match="can't be opened"):
            store.adopt(broken)
        store.start_empty()
        assert (contents(store), store.offset()) == ({}, None)
        store.adopt(taken.folder)
        assert (contents(store), store.offset()) == ({b"a": b"v"}, 1)
