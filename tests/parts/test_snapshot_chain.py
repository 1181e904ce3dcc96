"""Garbage collection of snapshots: whatever writers and collectors do at a time, and wherever one stops for ever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshot_kit import KEY, Actor, SteppedBucket, actors_of, contents_at, folder_of, memory_bucket, writer_of
from state_kit import memory_folder

from streams_runtime.snapshots.bucket import Bucket
from streams_runtime.snapshots.manifest_chain import collect, garbage, numbers_of, read_chain
from streams_runtime.snapshots.snapshot_writer import OvertakenException

KEEP = 2
ALL = 1000


def publish(bucket: Bucket, folder: Path, offset: int, files: dict[str, bytes], name: str = "one") -> None:
    writer_of(bucket, name).publish(folder_of(folder, files), contents_at(offset), lambda: False)


def missing(bucket: Bucket, keep: int = KEEP) -> set[str]:
    """Files that a snapshot which counts names, and that are not there."""
    there = bucket.sizes(KEY.files)
    return {path for manifest in read_chain(bucket, KEY, keep).manifests for path in manifest.paths} - set(there)


def test_the_newest_manifests_stay_and_what_only_older_ones_name_goes(tmp_path: Path) -> None:
    bucket = memory_bucket()
    for number in range(1, 6):
        publish(bucket, tmp_path / "store", number, {"always.sst": b"shared", f"{number}.sst": b"%d" % number})
    collect(bucket, KEY, KEEP)
    chain = read_chain(bucket, KEY, 10)
    assert [each.number for each in chain.manifests] == [5, 4]
    assert sorted(bucket.sizes(KEY.files)) == sorted({path for each in chain.manifests for path in each.paths})
    assert [{each.name for each in manifest.files} for manifest in chain.manifests] == [
        {"always.sst", "5.sst"},
        {"always.sst", "4.sst"},
    ]


def test_files_of_a_snapshot_that_is_still_going_up_stay(tmp_path: Path) -> None:
    bucket = memory_bucket()
    publish(bucket, tmp_path / "store", 1, {"a.sst": b"a"})
    under_way = KEY.file(2, "two", "0" * 64)
    lost = KEY.file(1, "two", "0" * 64)
    bucket.write(under_way, [b"x"])
    bucket.write(lost, [b"x"])
    assert collect(bucket, KEY, KEEP).files == (lost,)
    assert under_way in bucket.sizes(KEY.files)


def test_what_an_unreadable_manifest_may_name_stays_until_enough_newer_ones_are_there(tmp_path: Path) -> None:
    bucket = memory_bucket()
    publish(bucket, tmp_path / "store", 1, {"1.sst": b"1"})
    publish(bucket, tmp_path / "store", 2, {"2.sst": b"2"})
    bucket.write(KEY.manifest(2), [b"{ half of it"])
    before = set(bucket.sizes(KEY.root))
    assert read_chain(bucket, KEY, KEEP).head is None
    assert collect(bucket, KEY, KEEP).files == ()
    publish(bucket, tmp_path / "store", 3, {"3.sst": b"3"})
    collect(bucket, KEY, KEEP)
    assert before <= set(bucket.sizes(KEY.root))
    publish(bucket, tmp_path / "store", 4, {"4.sst": b"4"})
    collect(bucket, KEY, KEEP)
    assert numbers_of(bucket, KEY) == (4, 3)
    assert len(bucket.sizes(KEY.files)) == 2
    assert missing(bucket) == set()


def test_a_manifest_that_a_sleeper_made_anew_under_an_old_number_does_not_count(tmp_path: Path) -> None:
    bucket = SteppedBucket()
    publish(bucket, tmp_path / "store", 1, {"1.sst": b"1"})
    (sleeper,) = actors_of({"sleeper": writer(bucket, tmp_path, "sleeper", [4], KEEP)}).values()
    while not any("/sleeper-id" in path for path in bucket.sizes(KEY.files)):
        sleeper.step()
    for _ in range(3):  # its files are up, and the manifest, number 2, comes next
        if len([path for path in bucket.sizes(KEY.files) if "/sleeper-id" in path]) < 3:
            sleeper.step()
    for number in (2, 3):
        publish(bucket, tmp_path / "store", number, {f"{number}.sst": b"%d" % number})
    collect(bucket, KEY, 1)
    assert numbers_of(bucket, KEY) == (3,)
    sleeper.step()
    assert numbers_of(bucket, KEY) == (3, 2), "it made its number anew"
    assert [each.number for each in read_chain(bucket, KEY, ALL).manifests] == [3]
    assert missing(bucket, ALL) == set()
    while not sleeper.ended:
        sleeper.step()
    assert (sleeper.error, numbers_of(bucket, KEY)) == (None, (3,))


def test_nothing_is_deleted_where_there_is_nothing() -> None:
    bucket = memory_bucket()
    bucket.write(KEY.file(1, "one", "0" * 64), [b"first upload, under way"])
    assert collect(bucket, KEY, KEEP).files == ()
    assert garbage(read_chain(bucket, KEY, KEEP), KEY, bucket.sizes(KEY.files), KEEP).manifests == ()


def writer(bucket: Bucket, folder: Path, name: str, offsets: list[int], keep: int) -> Callable[[], None]:
    """An instance whose store is compacted now and then: of its files one stays, and one comes."""

    def run() -> None:
        mine = writer_of(bucket, name)
        for at, offset in enumerate(offsets):
            files = {"base.sst": b"base", "mid.sst": b"mid %d" % (offset // 3), f"{offset}.sst": b"%d" % offset}
            if at % 3 == 2:
                files = {"compacted.sst": b"all of %s %d" % (name.encode(), offset)}
            try:
                mine.publish(folder_of(folder / name, files), contents_at(offset), lambda: False)
            except OvertakenException:
                continue
            collect(bucket, KEY, keep)

    return run


def collector(bucket: Bucket, keep: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(2):
            collect(bucket, KEY, keep)

    return run


def run_at_random(bucket: SteppedBucket, actors: Mapping[str, Actor], chance: Random) -> None:
    """Let one actor after the other do some requests; kill some, let some sleep for long."""
    newest = 0
    while alive := [each for each in actors.values() if not each.ended]:
        actor = chance.choice(alive)
        for _ in range(chance.choice([1, 1, 2, 3, 20])):
            if actor.ended:
                break
            actor.step(chance.choice(["before", "after"]) if chance.random() < 0.01 else None)
            assert actor.error is None, repr(actor.error)
            assert missing(bucket, ALL) == set()
            chain = read_chain(bucket, KEY, 1)
            assert chain.newest >= newest, "the newest one has gone"
            newest = chain.newest


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 2**32), keeps=st.lists(st.integers(1, 3), min_size=4, max_size=4))
def test_no_snapshot_that_counts_ever_lacks_a_file_whoever_is_killed_and_whoever_sleeps(
    seed: int, keeps: list[int]
) -> None:
    chance, bucket = Random(seed), SteppedBucket()
    with memory_folder() as folder:
        writers = {
            name: writer(bucket, folder, name, sorted(chance.sample(range(1, 40), 6)), keep)
            for name, keep in zip(("one", "two", "three"), keeps, strict=False)
        }
        run_at_random(bucket, actors_of({**writers, "prune": collector(bucket, keeps[3])}), chance)
        publish(bucket, folder / "last", 99, {"base.sst": b"base"}, "last")
        collect(bucket, KEY, 1)
        named = {path for each in read_chain(bucket, KEY, ALL).manifests for path in each.paths}
        assert set(bucket.sizes(KEY.files)) == named, "garbage stays for ever"


@pytest.mark.parametrize("kill", ["before", "after"])
def test_a_kill_at_any_request_leaves_what_the_next_writer_goes_on_from(tmp_path: Path, kill: str) -> None:
    at = 0
    while True:
        bucket = SteppedBucket()
        publish(bucket, tmp_path / "store", 1, {"a.sst": b"a"})
        publish(bucket, tmp_path / "store", 2, {"a.sst": b"a", "b.sst": b"b"})
        publish(bucket, tmp_path / "store", 3, {"b.sst": b"b"})
        (actor,) = actors_of({"w": writer(bucket, tmp_path, "w", [4, 5], KEEP)}).values()
        for _ in range(at):
            actor.step()
        through = actor.ended
        if not through:
            actor.step(kill)
        assert missing(bucket) == set()
        publish(bucket, tmp_path / "store", 9, {"b.sst": b"b", "9.sst": b"9"}, "next")
        collect(bucket, KEY, KEEP)
        assert missing(bucket) == set()
        named = {path for each in read_chain(bucket, KEY, KEEP).manifests for path in each.paths}
        assert set(bucket.sizes(KEY.files)) == named, f"killed {kill} request {at}"
        if through:
            assert at > 10
            return
        at += 1
