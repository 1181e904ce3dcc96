"""Buckets, manifests and their catalogue: what is read back, what is refused, and what is said of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from snapshot_kit import KEY, contents_at, folder_of, memory_bucket, writer_of

from streams_runtime.snapshots.bucket import Bucket, BucketException, ObjectMissingException, open_bucket
from streams_runtime.snapshots.bucket_probe import require_conditional_writes
from streams_runtime.snapshots.manifest import Manifest, StoreKey, UnreadableManifestException, read_manifest
from streams_runtime.snapshots.manifest_chain import read_one
from streams_runtime.snapshots.snapshot_catalogue import Finding, list_snapshots, prune, verify
from streams_runtime.snapshots.snapshot_writer import OvertakenException, StoppedException
from streams_runtime.snapshots.throttle import Throttle


@pytest.fixture(params=["memory", "folder"])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Bucket:
    return memory_bucket() if request.param == "memory" else open_bucket(f"file://{tmp_path}/bucket", {})


def publish(bucket: Bucket, folder: Path, offset: int, files: dict[str, bytes], key: StoreKey = KEY) -> Manifest:
    made = writer_of(bucket, key=key).publish(folder_of(folder, files), contents_at(offset, offset), lambda: False)
    return made.manifest


def test_objects_are_written_once_read_listed_and_deleted(bucket: Bucket) -> None:
    assert bucket.create("app/a/1.json", b"x")
    assert not bucket.create("app/a/1.json", b"y")
    bucket.write("app/a/files/big", iter([b"12345"] * 5))
    assert bucket.read("app/a/1.json") == b"x"
    assert b"".join(bucket.chunks("app/a/files/big")) == b"12345" * 5
    assert bucket.sizes("app/a") == {"app/a/1.json": 1, "app/a/files/big": 25}
    assert bucket.sizes("app/a/fil") == {}, "a part of a name is no prefix"
    assert bucket.folders("app/a") == ["files"]
    for _ in range(2):
        bucket.delete("app/a/1.json")
    assert bucket.sizes("app") == {"app/a/files/big": 25}
    with pytest.raises(ObjectMissingException, match=r"has no app/a/1\.json"):
        bucket.read("app/a/1.json")
    with pytest.raises(ObjectMissingException):
        list(bucket.chunks("app/none"))
    require_conditional_writes(bucket, "app")


def test_an_object_whose_writing_fails_is_not_there(bucket: Bucket) -> None:
    def half() -> object:
        yield b"half"
        raise StoppedException

    with pytest.raises(StoppedException):
        bucket.write("app/x", half())  # type: ignore[arg-type]
    assert bucket.sizes("app") == {}


@pytest.mark.parametrize("url", ["ftp://b/p", "b", "az://c/p", "file:///proc/none"])
def test_a_url_that_is_none_is_refused_by_name(url: str) -> None:
    with pytest.raises(BucketException, match=url):
        open_bucket(url, {})


def test_credentials_come_from_the_environment_and_are_never_said(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_PROFILE": "not obstore's",
        "HOME": "/",
    }
    for name in environment:
        monkeypatch.delenv(name, raising=False)
    bucket = open_bucket("s3://b/p", environment)
    with pytest.raises(BucketException) as refused:
        bucket.read("app/x")
    assert "127.0.0.1:9" in str(refused.value)
    assert "hush" not in str(refused.value)
    assert "Debug" not in str(refused.value)


def test_a_manifest_comes_back_as_it_was_and_no_other_way(bucket: Bucket, tmp_path: Path) -> None:
    manifest = publish(bucket, tmp_path / "store", 9, {"a.sst": b"a", "CURRENT": b"c"})
    body = bucket.read(KEY.manifest(1))
    assert read_manifest(body, KEY, 1) == manifest
    assert json.loads(body)["offset"] == 9
    for wrong, why in (
        (body[:-1], "it is no manifest"),
        (b"[]", "it is no manifest"),
        (b"{}", "it is no manifest"),
        (body.replace(b'"size": 1', b'"size": 2'), "checksum"),
        (body.replace(b'"version": 1', b'"version": 7'), "it has version 7"),
    ):
        with pytest.raises(UnreadableManifestException, match=why):
            read_manifest(wrong, KEY, 1)
    with pytest.raises(UnreadableManifestException, match="it is that of totals-3, number 1"):
        read_manifest(body, KEY, 2)
    with pytest.raises(UnreadableManifestException, match="it is that of totals-3"):
        read_manifest(body, replace(KEY, application="other"), 1)


def test_a_writer_that_is_behind_publishes_nothing(bucket: Bucket, tmp_path: Path) -> None:
    publish(bucket, tmp_path / "store", 9, {"a.sst": b"a"})
    for offset, as_of in ((8, 99), (9, 9), (9, 8)):
        with pytest.raises(OvertakenException, match="has a snapshot at offset 9, made by one"):
            writer_of(bucket, "late").publish(tmp_path / "store", contents_at(offset, as_of), lambda: False)
    writer_of(bucket, "again").publish(tmp_path / "store", contents_at(9, 10), lambda: False)
    writer_of(bucket, "anew").publish(tmp_path / "store", contents_at(1, 1, "other topic"), lambda: False)
    assert [each.offset for each in list_snapshots(bucket, "app")] == [1, 9, 9]


def test_an_attempt_that_failed_goes_on_with_what_has_gone_up(tmp_path: Path) -> None:
    class Fails(Bucket):
        writes = 0

        def write(self, path: str, chunks: object) -> None:
            self.writes += 1
            if self.writes == 2:
                raise BucketException("503")
            super().write(path, chunks)  # type: ignore[arg-type]

    bucket = Fails(memory_bucket()._store, "memory://")
    writer, folder = writer_of(bucket), folder_of(tmp_path / "store", {"a.sst": b"a" * 100, "b.sst": b"b" * 10})
    with pytest.raises(BucketException, match="503"):
        writer.publish(folder, contents_at(1), lambda: False)
    assert writer.publish(folder, contents_at(1), lambda: False).uploaded == 10
    assert verify(bucket, "app") == []


def test_an_answer_that_was_lost_is_no_defeat(tmp_path: Path) -> None:
    """The manifest is there; the request was sent again and met itself."""

    class Twice(Bucket):
        def create(self, path: str, body: bytes) -> bool:
            super().create(path, body)
            return super().create(path, body)

    bucket = Twice(memory_bucket()._store, "memory://")
    assert publish(bucket, tmp_path / "store", 1, {"a.sst": b"a"}) == read_one(bucket, KEY, 1)


def test_verify_names_each_file_and_manifest_that_is_wrong(bucket: Bucket, tmp_path: Path) -> None:
    other = replace(KEY, partition=11)
    whole = publish(bucket, tmp_path / "s", 1, {"a.sst": b"aaaa"}, other)
    manifest = publish(bucket, tmp_path / "s", 1, {"a.sst": b"aaaa", "b.sst": b"bb", "c.sst": b"cccc"})
    publish(bucket, tmp_path / "s", 2, {"a.sst": b"aaaa"})
    assert verify(bucket, "app") == []
    a, b, c = (each.path for each in manifest.files)
    bucket.write(a, [b"aaXa"])
    bucket.write(b, [b"b"])
    bucket.delete(c)
    bucket.write(KEY.manifest(3), [b"half"])
    found = verify(bucket, "app")
    assert found[0].reason.startswith("it is no manifest")
    assert found[0].path == KEY.manifest(3)
    damaged = "its contents have another checksum: it is damaged"
    assert found[1:] == [
        Finding("totals", 3, 2, a, damaged),
        Finding("totals", 3, 1, a, damaged),
        Finding("totals", 3, 1, b, "it has 1 bytes, and the manifest says 2"),
        Finding("totals", 3, 1, c, "it is not there"),
    ]
    assert [each.reason for each in verify(bucket, "app", read_files=False)[1:]] == [
        "it has 1 bytes, and the manifest says 2",
        "it is not there",
    ]
    listed = list_snapshots(bucket, "app")
    assert [(each.partition, each.number) for each in listed] == [(3, 2), (3, 1), (11, 1)]
    assert (listed[-1].size, listed[-1].files, listed[-1].writer) == (whole.size, 1, "one one-id")


def test_prune_keeps_the_newest_of_each_store(bucket: Bucket, tmp_path: Path) -> None:
    other = replace(KEY, store="per-minute")
    for number in range(1, 4):
        publish(bucket, tmp_path / "s", number, {"a.sst": b"a", f"{number}.sst": b"%d" % number})
        publish(bucket, tmp_path / "s", number, {"a.sst": b"%d" % number}, other)
    pruned = prune(bucket, "app", 1)
    assert (pruned.manifests, pruned.files) == (4, 4)
    assert [(each.store, each.number) for each in list_snapshots(bucket, "app")] == [("per-minute", 3), ("totals", 3)]
    assert verify(bucket, "app") == []
    assert prune(bucket, "app", 1).files == 0
    assert prune(bucket, "nobody", 1).files == 0
    with pytest.raises(ValueError, match="keep is 0"):
        prune(bucket, "app", 0)


def test_bytes_go_through_at_the_rate() -> None:
    now, slept = 0.0, list[float]()

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        slept.append(seconds)

    throttle = Throttle(100.0, lambda: now, sleep)
    for _ in throttle.through([bytes(50)] * 5):
        pass
    assert slept == [0.5] * 4
    now += 10
    assert list(throttle.through([b"late"])) == [b"late"]
    assert len(slept) == 4
