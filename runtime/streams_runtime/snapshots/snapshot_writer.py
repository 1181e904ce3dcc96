"""From a checkpoint's folder to a published snapshot: what is new goes up, then the manifest, and then old ones go."""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streams_runtime.snapshots.bucket import CHUNK, Bucket, BucketException, ObjectMissingException
from streams_runtime.snapshots.manifest import Manifest, SnapshotFile, StoreKey, UnreadableManifestException
from streams_runtime.snapshots.manifest_chain import collect, numbers_of, read_one
from streams_runtime.snapshots.throttle import Throttle

_LOGGER = logging.getLogger("streams_runtime.snapshots")


class StoppedException(Exception):
    """The snapshot is given up: the task has gone, or the client closes."""


class OvertakenException(BucketException):
    """Another writer published a snapshot of this store first, or one that is further: this one is of no use."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a checkpoint holds, as the fields of a Manifest say it."""

    task: str
    changelog: str
    topic_id: str
    offset: int
    inputs: Mapping[str, int]
    format: str
    as_of: int
    created: int


@dataclass(frozen=True, slots=True)
class Published:
    """A snapshot that is there: its manifest, and how many bytes went up for it."""

    manifest: Manifest
    uploaded: int


@dataclass(slots=True)
class SnapshotWriter:
    """Writes the snapshots of one store's partition, one after the other, for as long as its task is here.

    It remembers checksums and what has gone up, so that an attempt that failed is not begun from nothing.
    """

    bucket: Bucket
    key: StoreKey
    instance: str
    throttle: Throttle
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    _checksums: dict[tuple[int, int, int], str] = field(default_factory=dict)
    _went_up_for: int = 0
    _went_up: dict[str, str] = field(default_factory=dict)

    def publish(self, folder: Path, contents: Contents, should_stop: Callable[[], bool]) -> Published:
        """Publish the files of a checkpoint.

        Raises:
            OvertakenException: another writer is as far or further; this store's snapshots are in good hands.
            BucketException: nothing is published; call again, with this folder or another one.
            StoppedException: `should_stop` said so.
            OSError: the folder can't be read.
        """
        numbers = numbers_of(self.bucket, self.key)
        number = (numbers[0] if numbers else 0) + 1
        head = self._head(number - 1)
        if head is not None and head.topic_id == contents.topic_id and _is_no_further(contents, head):
            raise OvertakenException(f"{self.key} has a snapshot at offset {head.offset}, made by {head.writer}")
        if number != self._went_up_for:
            self._went_up_for, self._went_up = number, {}
        named = {} if head is None else {(each.sha256, each.size): each.path for each in head.files}
        files, uploaded, there = list[SnapshotFile](), 0, sorted(folder.iterdir())
        present = {_identity(each) for each in there}
        self._checksums = {each: known for each, known in self._checksums.items() if each in present}
        for each in there:
            file, new = self._file(each, named, should_stop)
            files.append(file)
            uploaded += new
        manifest = Manifest(
            number=number,
            id=uuid.uuid4().hex,
            previous="" if head is None else head.id,
            application=self.key.application,
            store=self.key.store,
            partition=self.key.partition,
            task=contents.task,
            changelog=contents.changelog,
            topic_id=contents.topic_id,
            offset=contents.offset,
            inputs=contents.inputs,
            format=contents.format,
            as_of=contents.as_of,
            created=contents.created,
            writer=f"{self.instance} {self.id}",
            files=tuple(files),
        )
        _stop(should_stop)
        self._create(manifest)
        return Published(manifest, uploaded)

    def collect(self, keep: int) -> None:
        """Delete what is no longer named, as far as that works; the next call does the rest."""
        try:
            collect(self.bucket, self.key, keep)
        except BucketException as error:
            _LOGGER.info("old snapshots of %s stay until the next one: %s", self.key, error)

    def _head(self, number: int) -> Manifest | None:
        if not number:
            return None
        try:
            return read_one(self.bucket, self.key, number)
        except UnreadableManifestException as error:
            _LOGGER.warning(
                "the manifest %s can't be read: %s. The next snapshot names none of its files",
                self.key.manifest(number),
                error,
            )
            return None
        except ObjectMissingException as error:
            raise OvertakenException(f"{self.key} has newer snapshots by now than number {number}") from error

    def _file(
        self, path: Path, named: Mapping[tuple[str, int], str], should_stop: Callable[[], bool]
    ) -> tuple[SnapshotFile, int]:
        """The file as the manifest has it, and how many bytes of it went up."""
        size, sha256 = path.stat().st_size, self._checksum(path, should_stop)
        there = named.get((sha256, size)) or self._went_up.get(sha256)
        if there is not None:
            return SnapshotFile(path.name, size, sha256, there), 0
        at = self.key.file(self._went_up_for, self.id, sha256)
        self.bucket.write(at, self.throttle.through(_chunks(path, should_stop)))
        self._went_up[sha256] = at
        return SnapshotFile(path.name, size, sha256, at), size

    def _checksum(self, path: Path, should_stop: Callable[[], bool]) -> str:
        """Tables are never written again, and a hard link has the same inode: they are read once."""
        identity = _identity(path)
        if identity not in self._checksums or path.suffix != ".sst":
            found = hashlib.sha256()
            for chunk in self.throttle.through(_chunks(path, should_stop)):
                found.update(chunk)
            self._checksums[identity] = found.hexdigest()
        return self._checksums[identity]

    def _create(self, manifest: Manifest) -> None:
        path = self.key.manifest(manifest.number)
        if self.bucket.create(path, manifest.as_bytes()):
            return
        # A request that was sent twice finds what the first one wrote.
        try:
            there = read_one(self.bucket, self.key, manifest.number)
        except (UnreadableManifestException, ObjectMissingException):
            there = None
        if there is None or there.id != manifest.id:
            raise OvertakenException(f"another writer made snapshot {manifest.number} of {self.key} meanwhile")


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _is_no_further(contents: Contents, head: Manifest) -> bool:
    """A store that stands still is published again, since what a snapshot can be used for ends with its age."""
    return contents.offset < head.offset or (contents.offset == head.offset and contents.as_of <= head.as_of)


def _chunks(path: Path, should_stop: Callable[[], bool]) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            _stop(should_stop)
            yield chunk


def _stop(should_stop: Callable[[], bool]) -> None:
    if should_stop():
        raise StoppedException
