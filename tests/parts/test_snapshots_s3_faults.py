"""Snapshots in a real S3 server: what is published and fetched when requests fail as in real life, without a broker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import s3_server as servers
from bucket_faults import FaultProxy
from snapshot_kit import KEY, contents_at, folder_of, writer_of
from waiting import eventually

from streams_runtime.snapshots.bucket import Bucket, BucketException, open_bucket
from streams_runtime.snapshots.manifest import Manifest
from streams_runtime.snapshots.snapshot_catalogue import list_snapshots, prune, verify
from streams_runtime.snapshots.snapshot_fetcher import Fetch, SnapshotFetcher
from streams_runtime.snapshots.usable_snapshots import Wanted

SHARED = bytes(range(256)) * 1024
WANTED = Wanted("key-value, version 1", "app-totals-changelog", "topic-1", 0, 10**6, None)


@dataclass
class Stage:
    """A store's snapshots in the server's bucket; `now` is the clock of whoever fetches, in seconds."""

    place: servers.Bucket
    folder: Path
    now: float = 0.0
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def bucket(self) -> Bucket:
        """As a client opens it, through the proxy."""
        return open_bucket(f"{self.place.url}/shop", self.place.environment)

    def publish(self, offset: int) -> Manifest:
        """A snapshot at this offset: a file that all have, and one of its own."""
        self.files = {"000001.sst": SHARED, f"{offset:06d}.sst": str(offset).encode() * 1000, "CURRENT": b"M"}
        folder = folder_of(self.folder / "checkpoint", self.files)
        return writer_of(self.bucket).publish(folder, contents_at(offset, as_of=offset), lambda: False).manifest

    def fetch(self, fetcher: SnapshotFetcher) -> Fetch:
        """Ask, and wait until that is over."""
        fetch = fetcher.ask(KEY, WANTED, self.folder / "download")
        eventually(lambda: fetcher.is_through(fetch), "the fetch is over")
        return fetch

    def fetcher(self) -> SnapshotFetcher:
        """A new client's."""
        return SnapshotFetcher(lambda: self.bucket, lambda: self.now, lambda: 1.0)

    def downloaded(self) -> dict[str, bytes]:
        """What lies in the folder of the download."""
        folder = self.folder / "download"
        return {each.name: each.read_bytes() for each in folder.iterdir()} if folder.is_dir() else {}


@pytest.fixture
def stage(bucket: servers.Bucket, tmp_path: Path) -> Stage:
    return Stage(bucket, tmp_path)


def test_a_snapshot_comes_back_file_by_file_and_shares_what_did_not_change(stage: Stage) -> None:
    stage.publish(10)
    stage.publish(20)
    fetch = stage.fetch(stage.fetcher())
    assert fetch.manifest is not None
    assert (fetch.manifest.number, fetch.manifest.offset) == (2, 20)
    assert stage.downloaded() == stage.files
    assert list(stage.place.objects.values()).count(SHARED) == 1
    assert verify(stage.bucket, KEY.application) == []


FETCHING: dict[str, tuple[Callable[[FaultProxy], Any], str]] = {
    "busy": (lambda faults: faults.busy("GET", times=None), "can't be fetched"),
    "cut": (lambda faults: faults.cut("GET", "/files/", times=None), "can't be fetched"),
    "wrong bytes": (lambda faults: faults.wrong_bytes("GET", "/files/", times=None), "is put aside"),
    "wrong manifest": (lambda faults: faults.wrong_bytes("GET", "/manifests/.*json", times=None), "is put aside"),
}


@pytest.mark.parametrize("name", FETCHING)
def test_a_fault_that_stays_is_a_warning_and_leaves_the_store_to_its_changelog(
    stage: Stage, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage.publish(10)
    begin, says = FETCHING[name]
    fault, fetcher = begin(stage.place.faults), stage.fetcher()
    with caplog.at_level(logging.WARNING, "streams_runtime.snapshots"):
        fetch = stage.fetch(fetcher)
    assert fetch.manifest is None
    assert fault.met > 0
    assert any(says in text for text in caplog.messages), caplog.messages
    eventually(lambda: not stage.downloaded(), "what had come is deleted")
    stage.place.faults.clear()
    stage.now += 61  # a bucket that failed is left alone for a minute
    assert stage.fetch(fetcher).manifest is not None
    assert stage.downloaded() == stage.files


def test_a_bucket_that_hangs_is_given_up_by_the_clock_and_not_asked_again_at_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.publish(10)
    fault, fetcher = stage.place.faults.hang("GET", times=None), stage.fetcher()
    fetch = fetcher.ask(KEY, WANTED, stage.folder / "download")
    assert fault.done.wait(30)
    assert not fetcher.is_through(fetch)
    stage.now += 16
    with caplog.at_level(logging.WARNING, "streams_runtime.snapshots"):
        assert fetcher.is_through(fetch)
    assert "is given up: nothing came for 16 s" in caplog.text
    asked = len(stage.place.faults.requests)
    assert stage.fetch(fetcher).manifest is None
    assert len(stage.place.faults.requests) == asked


@pytest.mark.parametrize("name", ["busy", "cut", "wrong bytes"])
def test_a_fault_that_passes_costs_a_request_and_never_a_wrong_byte(stage: Stage, name: str) -> None:
    """A checksum that differs puts that snapshot aside, so the one before is taken."""
    stage.publish(10)
    older = dict(stage.files)
    stage.publish(20)
    faults = stage.place.faults
    begin = {"busy": faults.busy, "cut": faults.cut, "wrong bytes": faults.wrong_bytes}[name]
    fault = begin("GET", "/files/000000000002/", times=1)
    fetch = stage.fetch(stage.fetcher())
    assert fault.met == 1
    assert fetch.manifest is not None
    assert fetch.manifest.offset == (10 if name == "wrong bytes" else 20)
    assert stage.downloaded() == (older if name == "wrong bytes" else stage.files)


@pytest.mark.parametrize("name", ["busy", "cut upload", "lost answer"])
@pytest.mark.parametrize("path", ["/files/", "/manifests/.*json"])
def test_an_upload_that_fails_once_is_sent_again_and_the_snapshot_is_whole(stage: Stage, name: str, path: str) -> None:
    """A manifest whose answer was lost is there already when it is sent again: it is the writer's own."""
    stage.publish(10)
    faults = stage.place.faults
    begin = {"busy": faults.busy, "cut upload": faults.cut_upload, "lost answer": faults.lost_answer}[name]
    fault = begin("PUT", path, times=1)
    assert stage.publish(20).number == 2
    assert fault.met == 1
    assert [each.offset for each in list_snapshots(stage.bucket, KEY.application)] == [20, 10]
    assert verify(stage.bucket, KEY.application) == []


@pytest.mark.parametrize("path", ["/files/", "/manifests/.*json"])
def test_an_upload_that_goes_on_failing_publishes_nothing_and_the_next_one_is_whole(stage: Stage, path: str) -> None:
    stage.publish(10)
    stage.place.faults.busy("PUT", path, times=None)
    with pytest.raises(BucketException, match="shop"):
        stage.publish(20)
    stage.place.faults.clear()
    assert [each.offset for each in list_snapshots(stage.bucket, KEY.application)] == [10]
    assert verify(stage.bucket, KEY.application) == []
    assert stage.publish(30).number == 2
    prune(stage.bucket, KEY.application, 1)
    assert [each.offset for each in list_snapshots(stage.bucket, KEY.application)] == [30]
    assert verify(stage.bucket, KEY.application) == []
    assert not [
        path
        for path in stage.place.objects
        if "/files/000000000001/" in path and b"10" * 9 in stage.place.objects[path]
    ], "what only the older one named has gone"


def test_pruning_that_is_cut_short_damages_nothing_and_goes_on_the_next_time(stage: Stage) -> None:
    for offset in (10, 20, 30):
        stage.publish(offset)
    stage.place.faults.busy("DELETE POST", times=None)
    with pytest.raises(BucketException):
        prune(stage.bucket, KEY.application, 1)
    stage.place.faults.clear()
    assert verify(stage.bucket, KEY.application) == []
    done = prune(stage.bucket, KEY.application, 1)
    assert (done.manifests, done.files) == (2, 2)
    assert [each.offset for each in list_snapshots(stage.bucket, KEY.application)] == [30]
    assert verify(stage.bucket, KEY.application) == []


def test_credentials_that_are_refused_are_named_without_the_secret(stage: Stage) -> None:
    wrong = {**stage.place.environment, "AWS_SECRET_ACCESS_KEY": "hunter2"}
    with pytest.raises(BucketException) as refused:
        open_bucket(stage.place.url, wrong).sizes("app")
    assert "hunter2" not in str(refused.value)
    assert stage.place.url in str(refused.value)
