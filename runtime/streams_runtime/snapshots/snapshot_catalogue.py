"""What lies in a bucket of an application, whether it is whole, and the end of what is too old: for `streamsapp`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from streams_runtime.snapshots.bucket import Bucket, ObjectMissingException
from streams_runtime.snapshots.manifest import Manifest, StoreKey, UnreadableManifestException
from streams_runtime.snapshots.manifest_chain import collect, numbers_of, read_one


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot of a store's partition.

    `offset` of the changelog comes next, `created` is when it was made, `size` are bytes of all its `files`, those
    that it shares with others included.
    """

    store: str
    partition: int
    task: str
    number: int
    changelog: str
    topic_id: str
    offset: int
    created: datetime
    writer: str
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: with a store's snapshot of this number, and in which object."""

    store: str
    partition: int
    number: int
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many manifests and files were deleted."""

    manifests: int
    files: int


def stores_of(bucket: Bucket, application: str) -> list[StoreKey]:
    """The partitions of stores that the application has objects of, sorted. Raises BucketException."""
    found = [
        StoreKey(application, store, int(partition))
        for store in bucket.folders(application)
        for partition in bucket.folders(f"{application}/{store}")
        if partition.isdecimal()
    ]
    return sorted(found, key=lambda each: (each.store, each.partition))


def list_snapshots(bucket: Bucket, application: str) -> list[Snapshot]:
    """The application's snapshots, by store and partition, newest first; those that can't be read are left out.

    Raises:
        BucketException: the bucket can't be read.
    """
    return [
        _shown(found)
        for key in stores_of(bucket, application)
        for found in _manifests(bucket, key)
        if isinstance(found, Manifest)
    ]


def verify(bucket: Bucket, application: str, read_files: bool = True) -> list[Finding]:
    """What is wrong with the application's snapshots; empty when every one is whole.

    With `read_files` each file is read and its checksum compared, else only its size is.

    Raises:
        BucketException: the bucket can't be read.
    """
    return [finding for key in stores_of(bucket, application) for finding in _verified(bucket, key, read_files)]


def prune(bucket: Bucket, application: str, keep: int) -> Pruned:
    """Delete all but the newest `keep` snapshots (at least 1) of each store's partition, and files that none names.

    It may run while instances write and read snapshots.

    Raises:
        BucketException: some of it may be left; call again.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}: the newest snapshot always stays")
    done = [collect(bucket, key, keep) for key in stores_of(bucket, application)]
    return Pruned(sum(len(each.manifests) for each in done), sum(len(each.files) for each in done))


def _manifests(bucket: Bucket, key: StoreKey) -> Iterator[Manifest | Finding]:
    for number in numbers_of(bucket, key):
        try:
            yield read_one(bucket, key, number)
        except UnreadableManifestException as error:
            yield Finding(key.store, key.partition, number, key.manifest(number), str(error))
        except ObjectMissingException:
            continue  # deleted since it was listed


def _verified(bucket: Bucket, key: StoreKey, read_files: bool) -> Iterator[Finding]:
    sizes, wrong = bucket.sizes(key.files), dict[str, str | None]()
    for found in _manifests(bucket, key):
        if isinstance(found, Finding):
            yield found
            continue
        for file in found.files:
            if file.path not in wrong:
                wrong[file.path] = _wrong_with(bucket, file.path, file.size, file.sha256, sizes, read_files)
            reason = wrong[file.path]
            if reason is not None:
                yield Finding(key.store, key.partition, found.number, file.path, reason)


def _wrong_with(
    bucket: Bucket, path: str, size: int, sha256: str, sizes: dict[str, int], read_files: bool
) -> str | None:
    if path not in sizes:
        return "it is not there"
    if sizes[path] != size:
        return f"it has {sizes[path]} bytes, and the manifest says {size}"
    if not read_files:
        return None
    checksum = hashlib.sha256()
    try:
        for chunk in bucket.chunks(path):
            checksum.update(chunk)
    except ObjectMissingException:
        return "it is not there"
    return None if checksum.hexdigest() == sha256 else "its contents have another checksum: it is damaged"


def _shown(manifest: Manifest) -> Snapshot:
    return Snapshot(
        manifest.store,
        manifest.partition,
        manifest.task,
        manifest.number,
        manifest.changelog,
        manifest.topic_id,
        manifest.offset,
        datetime.fromtimestamp(manifest.created / 1000, UTC),
        manifest.writer,
        len(manifest.files),
        manifest.size,
    )
