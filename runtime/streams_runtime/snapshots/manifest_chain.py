"""The manifests of a store as they follow one another, and which objects no snapshot will ever name again.

Manifests have numbers, one after the other, and each number is given once: an object that must not be there yet. Each
names the one that it follows. Those that count are the newest, the one it follows, and so on. Another one is a
leftover: deleted already when a writer that had been asleep for long made its number anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from streams_runtime.snapshots.bucket import Bucket, ObjectMissingException
from streams_runtime.snapshots.manifest import (
    Manifest,
    StoreKey,
    UnreadableManifestException,
    number_of_file,
    number_of_manifest,
    read_manifest,
)


@dataclass(frozen=True, slots=True)
class Chain:
    """`numbers` are all that are there, newest first; `manifests` those that count, newest first.

    `unreadable` is the number of the manifest where that ends because it could not be read; None where it ends itself.
    """

    numbers: tuple[int, ...] = ()
    manifests: tuple[Manifest, ...] = ()
    unreadable: int | None = None

    @property
    def newest(self) -> int:
        """The highest number; 0 where there is none."""
        return self.numbers[0] if self.numbers else 0

    @property
    def head(self) -> Manifest | None:
        """The newest manifest; None where there is none, or it can't be read."""
        return self.manifests[0] if self.manifests else None


@dataclass(frozen=True, slots=True)
class Garbage:
    """Paths of manifests and of files that may be deleted, in this order."""

    manifests: tuple[str, ...]
    files: tuple[str, ...]


def numbers_of(bucket: Bucket, key: StoreKey) -> tuple[int, ...]:
    """The numbers of a store's manifests, newest first. Raises BucketException."""
    found = (number_of_manifest(path) for path in bucket.sizes(key.manifests))
    return tuple(sorted((number for number in found if number), reverse=True))


def read_one(bucket: Bucket, key: StoreKey, number: int) -> Manifest:
    """One manifest. Raises BucketException, UnreadableManifestException."""
    return read_manifest(bucket.read(key.manifest(number)), key, number)


def read_chain(bucket: Bucket, key: StoreKey, most: int) -> Chain:
    """The chain of a store, of which at most so many manifests are read. Raises BucketException."""
    numbers = numbers_of(bucket, key)
    manifests: list[Manifest] = []
    for number in numbers:
        if len(manifests) == most:
            break
        if manifests and number != manifests[-1].number - 1:
            break
        try:
            manifest = read_one(bucket, key, number)
        except UnreadableManifestException:
            return Chain(numbers, tuple(manifests), number)
        except ObjectMissingException:
            break  # somebody else has deleted it since
        if manifests and manifest.id != manifests[-1].previous:
            break
        manifests.append(manifest)
    return Chain(numbers, tuple(manifests))


def garbage(chain: Chain, key: StoreKey, files: Iterable[str], keep: int) -> Garbage:
    """What may be deleted, now or at any later time, if `keep` manifests are to stay; pure.

    A file belongs to the number of the manifest that it went up for. When that number is given, the file is named by
    then or never: a writer takes over from its predecessor's manifest alone, and gives its new files the next number.
    What an unreadable manifest among the newest may name stays until `keep` newer ones are there.
    """
    if chain.head is None:
        return Garbage((), ())
    live = chain.manifests[:keep]
    floor = chain.unreadable if chain.unreadable is not None and len(live) < keep else 0
    named: Collection[str] = {path for manifest in live for path in manifest.paths}
    alive = {manifest.number for manifest in live}
    return Garbage(
        tuple(key.manifest(number) for number in chain.numbers if number > floor and number not in alive),
        tuple(
            path
            for path in files
            if path not in named and (number := number_of_file(path)) is not None and floor < number <= chain.newest
        ),
    )


def collect(bucket: Bucket, key: StoreKey, keep: int) -> Garbage:
    """Delete what no snapshot names and none will; returns what that was.

    Manifests go before the files that they name, so a crash in between leaves files that the next call deletes. Any
    number of processes may do this at a time, and one may stop anywhere and go on at any time.

    Raises:
        BucketException: some of it may be left; call again.
    """
    chain = read_chain(bucket, key, keep)
    found = garbage(chain, key, bucket.sizes(key.files), keep)
    for path in (*found.manifests, *found.files):
        bucket.delete(path)
    return found
