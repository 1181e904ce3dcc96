"""Stores that begin with a snapshot: which one is taken, what is read behind it, and that nothing depends on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from changelog_records import Change
from clients import client
from orders import topology
from snapshot_kit import memory_bucket
from snapshot_stage import KEY, LOG, TASK, Stage, Task, staged
from state_kit import contents, key_value_store
from waiting import eventually

from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.restore.snapshot_start import NoSnapshots, SnapshotStart
from streams_runtime.snapshots.bucket import Bucket
from streams_runtime.snapshots.manifest import Manifest
from streams_runtime.snapshots.manifest_chain import read_chain
from streams_runtime.snapshots.snapshot_settings import SnapshotSettings
from streams_runtime.state.store import Updates

DAY = 86_400.0


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


def test_a_store_that_has_nothing_begins_with_the_snapshot_and_reads_the_tail_only(stage: Stage) -> None:
    stage.restore()
    assert (stage.has_all, stage.began_with_snapshot) == (True, True)
    assert stage.brokers.reads == list(range(900, 1000))
    assert (stage.store.offset(), stage.store.topic_id()) == (1000, "id")
    assert stage.heard.calls == [
        ("start", str(LOG), "totals", 900, 1000),
        ("batch", str(LOG), "totals", 1000, 100),
        ("end", str(LOG), "totals", 100),
    ]
    assert stage.progress.snapshot()[0]["snapshot"] is True
    assert stage.fetcher.totals.received == stage.fetcher.totals.downloaded > 0
    assert not list((stage.folder / "here").glob("downloads/*"))


def test_a_store_that_has_something_asks_no_bucket(stage: Stage) -> None:
    stage.bucket = cast("Bucket", None)
    stage.store.write(Updates([b"57"], [b"950"], [7]), 950)
    stage.store.follow("id", 950)
    stage.restore()
    assert stage.brokers.reads == list(range(950, 1000))
    assert stage.progress.snapshot()[0]["snapshot"] is False


def test_a_store_that_is_far_behind_the_logs_beginning_begins_with_a_snapshot(stage: Stage) -> None:
    stage.store.write(Updates([b"gone since"], [b"1"], [7]), 5)
    stage.store.follow("id", 5)
    stage.brokers.start = 100
    stage.restore()
    assert stage.brokers.reads == list(range(900, 1000))
    assert b"gone since" not in contents(stage.store)


def test_a_short_changelog_is_not_worth_a_snapshot(stage: Stage) -> None:
    stage.bucket = cast("Bucket", None)
    stage.brokers.start = 600
    stage.restore()
    assert stage.has_all


def damaged_file(stage: Stage) -> None:
    (path, *_) = (each.path for each in newest(stage).files if each.name.endswith(".sst"))
    body = bytearray(stage.bucket.read(path))
    body[len(body) // 2] ^= 1
    stage.bucket.write(path, [bytes(body)])


def half_a_file(stage: Stage) -> None:
    (path, *_) = (each.path for each in newest(stage).files if each.name.endswith(".sst"))
    stage.bucket.write(path, [stage.bucket.read(path)[:-1]])


def missing_file(stage: Stage) -> None:
    stage.bucket.delete(newest(stage).files[0].path)


def half_a_manifest(stage: Stage) -> None:
    path = KEY.manifest(newest(stage).number)
    stage.bucket.write(path, [stage.bucket.read(path)[:-20]])


def altered_manifest(stage: Stage) -> None:
    path = KEY.manifest(newest(stage).number)
    stage.bucket.write(path, [stage.bucket.read(path).replace(b'"offset": 900', b'"offset": 950')])


def other_topic(stage: Stage) -> None:
    stage.brokers.topic_id = "made anew"


def truncated_log(stage: Stage) -> None:
    del stage.brokers.records[800:]


def log_begins_later(stage: Stage) -> None:
    stage.brokers.start = 901
    stage.brokers.records += [Change(n, b"%d" % (n % 100), b"%d" % n) for n in range(1000, 1500)]


def too_old_for_deletions(stage: Stage) -> None:
    stage.now += 0.95 * DAY


def from_the_future(stage: Stage) -> None:
    stage.now -= DAY


def unknown_settings(stage: Stage) -> None:
    stage.brokers.config = {}


def other_format(stage: Stage) -> None:
    path, manifest = KEY.manifest(newest(stage).number), newest(stage)
    stage.bucket.write(path, [replace(manifest, format="key-value, version 2").as_bytes()])


def wrong_offset(stage: Stage) -> None:
    """A manifest that is whole and says what its files do not."""
    path, manifest = KEY.manifest(newest(stage).number), newest(stage)
    stage.bucket.write(path, [replace(manifest, offset=901).as_bytes()])


def outside_of_the_folder(stage: Stage) -> None:
    path, manifest = KEY.manifest(newest(stage).number), newest(stage)
    first, *others = manifest.files
    evil = replace(manifest, files=(replace(first, name="../../escaped"), *others))
    stage.bucket.write(path, [evil.as_bytes()])


def newest(stage: Stage) -> Manifest:
    head = read_chain(stage.bucket, KEY, 1).head
    assert head is not None
    return head


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (damaged_file, "has another checksum than the manifest says"),
        (half_a_file, "has another size than"),
        (missing_file, "memory:// has no app/totals/0/files/"),
        (half_a_manifest, "it is no manifest, or a part of one"),
        (altered_manifest, "its checksum is another one"),
        (other_topic, "its changelog was deleted and made anew since"),
        (truncated_log, "the changelog ends at 800, before its offset 900"),
        (log_begins_later, "the changelog begins at 901, after its offset 900"),
        (too_old_for_deletions, "the changelog keeps deletions for 86400 s only (delete.retention.ms)"),
        (from_the_future, "the clock of other"),
        (unknown_settings, "the changelog keeps deletions for 0 s only"),
        (other_format, "it holds key-value, version 2, and the store is key-value, version 1"),
        (wrong_offset, "its files are at offset 900 of topic id, and the manifest says 901"),
        (outside_of_the_folder, "which is none of a store"),
    ],
)
def test_a_snapshot_that_can_not_be_used_is_put_aside_and_the_changelog_is_read(
    stage: Stage, spoil: Callable[[Stage], None], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(stage)
    stage.restore()
    assert said in caplog.text
    assert "snapshot 1 of store totals-0 is put aside" in caplog.text
    assert not stage.began_with_snapshot
    assert stage.brokers.reads[0] == stage.brokers.start or stage.brokers.reads[0] == 0
    expected = {record.k: record.v for record in stage.brokers.records[stage.brokers.reads[0] :]}
    assert contents(stage.store) == expected
    assert (stage.store.offset(), stage.store.topic_id()) == (len(stage.brokers.records), stage.brokers.topic_id)
    assert not list(stage.folder.rglob("escaped"))
    assert not list((stage.folder / "here").glob("downloads/*"))


def test_a_log_that_keeps_deletions_for_ever_takes_any_age(stage: Stage) -> None:
    stage.brokers.config = {"cleanup.policy": "delete", "delete.retention.ms": "1"}
    stage.now += 300 * DAY
    stage.restore()
    assert stage.began_with_snapshot


def test_the_one_before_is_taken_where_the_newest_is_damaged(stage: Stage) -> None:
    stage.leave_snapshot(950, extra=b"newer")
    damaged_file(stage)
    stage.restore()
    assert stage.has_all
    assert stage.brokers.reads[0] in (0, 900)  # 0: the two share the damaged file
    assert b"newer" not in contents(stage.store)


class Hanging(Bucket):
    """Answers nothing from a certain request on, until it is let go."""

    def __init__(self, bucket: Bucket, answers: int) -> None:
        super().__init__(bucket._store, "s3://slow")
        self.answers, self.asked, self.let_go = answers, 0, threading.Event()

    def _stand(self) -> None:
        self.asked += 1
        if self.asked > self.answers:
            self.let_go.wait(60)

    def sizes(self, prefix: str) -> dict[str, int]:
        self._stand()
        return super().sizes(prefix)

    def read(self, path: str) -> bytes:
        self._stand()
        return super().read(path)

    def chunks(self, path: str) -> Iterator[bytes]:
        self._stand()
        for chunk in super().chunks(path):
            self._stand()
            yield chunk


@pytest.mark.parametrize("answers", [0, 1, 2, 5])
def test_a_bucket_that_hangs_keeps_no_store_from_its_changelog_for_long(
    stage: Stage, answers: int, caplog: pytest.LogCaptureFixture
) -> None:
    stage.bucket = hanging = Hanging(stage.bucket, answers)
    stage.reader.register(stage.restorer)
    tasks = {LOG: Task(stage.store)}
    stage.reader.restore(tasks)
    eventually(lambda: hanging.asked > answers)
    stage.clock += 14
    assert stage.reader.restore(tasks) == set()
    assert not stage.reader.loading, "Spark need not wait for it"
    stage.clock += 2
    stage.finish()
    assert (stage.has_all, stage.brokers.reads[0]) == (True, 0)
    assert "is given up: nothing came for" in caplog.text
    hanging.let_go.set()
    eventually(lambda: not list((stage.folder / "here").glob("downloads/*")))
    assert not stage.began_with_snapshot, "what comes late changes nothing"


def test_a_bucket_that_crawls_is_given_up(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    class Crawling(Hanging):
        def chunks(self, path: str) -> Iterator[bytes]:
            for byte in super().chunks(path):
                for at in range(len(byte)):
                    if self.let_go.is_set():
                        return
                    stage.clock += 1
                    yield byte[at : at + 1]
                    if at > 30:
                        self.let_go.wait(60)

    stage.bucket = crawling = Crawling(stage.bucket, 1000)
    stage.restore()
    assert "bytes came in" in caplog.text or "nothing came for" in caplog.text
    assert (stage.has_all, stage.brokers.reads[0]) == (True, 0)
    crawling.let_go.set()


def test_after_a_failure_other_stores_do_not_wait_for_the_bucket(stage: Stage) -> None:
    stage.bucket = hanging = Hanging(stage.bucket, 0)
    stage.reader.register(stage.restorer)
    stage.reader.restore({})
    eventually(lambda: hanging.asked == 1)
    stage.clock += 16
    stage.finish()
    with key_value_store(stage.folder / "second" / "rocksdb") as second:
        stage.restorer = StateRestorer(TASK, second)
        stage.store = second
        stage.reader.unregister([LOG])
        stage.reader.register(stage.restorer)
        assert stage.reader.restore({LOG: Task(second)}) in (set(), {LOG})
        assert hanging.asked == 1, "not asked"
        assert not stage.reader._held
    hanging.let_go.set()


def test_a_store_that_is_taken_away_leaves_nothing_of_its_snapshot(stage: Stage) -> None:
    stage.bucket = hanging = Hanging(stage.bucket, 3)
    stage.reader.register(stage.restorer)
    stage.reader.restore({})
    eventually(lambda: hanging.asked > 3)
    stage.reader.unregister([LOG])
    assert not stage.reader.busy
    hanging.let_go.set()
    eventually(lambda: not list((stage.folder / "here").glob("downloads/*")))
    assert (contents(stage.store), stage.fetcher.totals.fetched) == ({}, 0)


def test_a_store_that_is_taken_away_when_its_snapshot_is_here_leaves_nothing_of_it(stage: Stage) -> None:
    asked = threading.Event()
    bucket = stage.fetcher._open_bucket
    stage.fetcher._open_bucket = lambda: bucket() if asked.wait(20) else pytest.fail("nothing asked for the bucket")
    stage.reader.register(stage.restorer)
    stage.reader.restore({})
    asked.set()  # not before: a snapshot that is here within the call is the store's at once
    eventually(lambda: stage.fetcher.totals.fetched == 1)
    assert list((stage.folder / "here").glob("downloads/*"))
    stage.reader.unregister([LOG])
    assert not list((stage.folder / "here").glob("downloads/*"))
    assert contents(stage.store) == {}


def test_a_full_disk_is_noticed_before_it_is_full(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("streams_runtime.snapshots.snapshot_download.shutil.disk_usage", lambda _: usage)
    stage.restore()
    assert "has 1000 bytes left, and the snapshot has" in caplog.text
    assert (stage.has_all, stage.began_with_snapshot) == (True, False)


def test_an_application_without_a_snapshot_reads_its_changelog(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.bucket = memory_bucket()
    stage.restore()
    assert (stage.has_all, stage.brokers.reads[0], stage.fetcher.totals.put_aside) == (True, 0, 0)
    assert caplog.text == ""


def test_a_client_makes_and_fetches_snapshots_as_its_resource_says(tmp_path: Path) -> None:
    state = {"snapshots": {"url": f"file://{tmp_path}/bucket", "interval": "7s", "keep": 3}}
    with client("127.0.0.1:9", "app", topology("app"), tmp_path / "state", state=state) as made:
        parts = made.context.snapshots
        assert parts is not None
        assert parts.snapshotter._settings == SnapshotSettings(f"file://{tmp_path}/bucket", 7.0, 3)
        begins = made.context.updaters.snapshots(lambda *_: None)
        assert isinstance(begins, SnapshotStart)
        assert begins._fetcher is parts.fetcher
        assert made.describe()["snapshots"] == {
            "made": 0,
            "uploaded_bytes": 0,
            "failures": 0,
            "longest_pause": 0.0,
            "fetched": 0,
            "downloaded_bytes": 0,
            "received_bytes": 0,
            "put_aside": 0,
            "stores": [],
        }
        assert not (tmp_path / "bucket").exists(), "opened when it is needed"
    with client("127.0.0.1:9", "app", topology("app"), tmp_path / "state") as made:
        assert made.context.snapshots is None
        assert made.describe()["snapshots"] is None
        assert isinstance(made.context.updaters.snapshots(lambda *_: None), NoSnapshots)
