"""A snapshot's files, from the bucket into a folder, each compared with its size and checksum."""

from __future__ import annotations

import hashlib
import os
import queue
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from streams_runtime.snapshots.bucket import Bucket, BucketException
from streams_runtime.snapshots.manifest import Manifest, SnapshotFile

_AT_ONCE = 4  # files; one connection seldom fills a network
_SPARE = 1.1  # of the disk: other stores write, too


class DamagedSnapshotException(BucketException):
    """A file of the snapshot is not what the manifest says."""


class AbandonedException(Exception):
    """Nobody waits for the snapshot any more."""


def download(
    bucket: Bucket, manifest: Manifest, folder: Path, on_bytes: Callable[[int], None], is_abandoned: Callable[[], bool]
) -> None:
    """Write the files into `folder`, which is made anew; they are on the disk when this returns.

    `on_bytes` hears of bytes that have come, from several threads.

    Raises:
        DamagedSnapshotException, ObjectMissingException: this snapshot can't be used.
        BucketException: the bucket is away or too slow.
        AbandonedException: `is_abandoned` said so.
        OSError: the disk is full, or can't be written.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    free = shutil.disk_usage(folder).free
    if free < manifest.size * _SPARE:
        raise OSError(f"the disk of {folder} has {free} bytes left, and the snapshot has {manifest.size}")
    left: queue.SimpleQueue[SnapshotFile] = queue.SimpleQueue()
    for each in sorted(manifest.files, key=lambda file: -file.size):
        left.put(each)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not failures:
                file = left.get_nowait()
                _fetch(bucket, file, folder / file.name, on_bytes, lambda: is_abandoned() or bool(failures))
        except queue.Empty:
            return
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, daemon=True, name=f"{folder.name}-{n}") for n in range(_AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    _sync(folder)


def _fetch(
    bucket: Bucket, file: SnapshotFile, path: Path, on_bytes: Callable[[int], None], is_abandoned: Callable[[], bool]
) -> None:
    found, size = hashlib.sha256(), 0
    with path.open("wb") as target:
        for chunk in bucket.chunks(file.path):
            if is_abandoned():
                raise AbandonedException
            size += len(chunk)
            if size > file.size:
                break
            found.update(chunk)
            target.write(chunk)
            on_bytes(len(chunk))
        target.flush()
        os.fsync(target.fileno())
    if size != file.size:
        raise DamagedSnapshotException(f"{file.path} has another size than the {file.size} bytes of the manifest")
    if found.hexdigest() != file.sha256:
        raise DamagedSnapshotException(f"{file.path} has another checksum than the manifest says: it is damaged")


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
