"""What a snapshot is: the manifest of a store's files, and the names of objects."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from streams_runtime.errors import StreamsException

VERSION: Final = 1
"""Of the manifest's own form; another one is not read."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class UnreadableManifestException(StreamsException):
    """A manifest is damaged, or of a version that is not known here."""


@dataclass(frozen=True, slots=True)
class StoreKey:
    """One partition of an application's store, as objects are named by it."""

    application: str
    store: str
    partition: int

    def __str__(self) -> str:
        return f"{self.store}-{self.partition}"

    @property
    def root(self) -> str:
        """The prefix of all its objects."""
        return f"{self.application}/{self.store}/{self.partition}"

    @property
    def manifests(self) -> str:
        """The prefix of its manifests."""
        return f"{self.root}/manifests"

    @property
    def files(self) -> str:
        """The prefix of its files."""
        return f"{self.root}/files"

    def manifest(self, number: int) -> str:
        """The path of a manifest."""
        return f"{self.manifests}/{number:012d}.json"

    def file(self, number: int, writer: str, sha256: str) -> str:
        """The path of a file that goes up for the manifest of this number."""
        return f"{self.files}/{number:012d}/{writer}-{sha256}"


def number_of_manifest(path: str) -> int | None:
    """The number in a manifest's path; None for what is none."""
    name = path.rsplit("/", 1)[-1]
    return int(name.removesuffix(".json")) if re.fullmatch(r"\d{12}\.json", name) else None


def number_of_file(path: str) -> int | None:
    """The number of the manifest that a file went up for; None for what is none."""
    parts = path.split("/")
    return int(parts[-2]) if len(parts) > 1 and re.fullmatch(r"\d{12}", parts[-2]) else None


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A file of the store's folder: its name there, its size in bytes, its checksum, and the object that has it."""

    name: str
    size: int
    sha256: str
    path: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One snapshot of a store's partition.

    `number` counts the store's snapshots, `previous` is the id of the one before, whose files this one may name. The
    store has its changelog up to `offset`, which comes next, of the topic with the id `topic_id`. All records from
    there on were written after `as_of`. `inputs`: the task has processed its inputs up to these offsets at least.
    `created` and `as_of` in ms since 1970, by the clock of `writer`, which is an instance.
    """

    number: int
    id: str
    previous: str
    application: str
    store: str
    partition: int
    task: str
    changelog: str
    topic_id: str
    offset: int
    inputs: Mapping[str, int]
    format: str
    as_of: int
    created: int
    writer: str
    files: tuple[SnapshotFile, ...]

    @property
    def key(self) -> StoreKey:
        """Whose snapshot it is."""
        return StoreKey(self.application, self.store, self.partition)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self.files)

    @property
    def paths(self) -> frozenset[str]:
        """The objects that it names."""
        return frozenset(each.path for each in self.files)

    def as_bytes(self) -> bytes:
        """The object's contents."""
        body = {"version": VERSION, **asdict(self)}
        return json.dumps({**body, "checksum": _checksum(body)}, indent=1).encode()


def read_manifest(body: bytes, key: StoreKey, number: int) -> Manifest:
    """The manifest in an object's contents, which has to be this store's and to have this number.

    Raises:
        UnreadableManifestException: it is none, it is damaged, or another version wrote it.
    """
    try:
        fields: dict[str, Any] = json.loads(body)
        version, checksum = fields["version"], fields.pop("checksum")
        if version != VERSION:
            raise UnreadableManifestException(f"it has version {version!r}, and this program reads {VERSION}")
        if checksum != _checksum(fields):
            raise UnreadableManifestException("its checksum is another one: it is damaged")
        del fields["version"]
        files = tuple(SnapshotFile(**each) for each in fields.pop("files"))
        manifest = Manifest(**fields, files=files)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableManifestException(f"it is no manifest, or a part of one ({error})") from error
    if manifest.key != key or manifest.number != number:
        raise UnreadableManifestException(f"it is that of {manifest.key}, number {manifest.number}")
    for each in files:
        if not (_PLAIN_NAME.fullmatch(each.name) and _SHA256.fullmatch(each.sha256) and each.path.startswith(key.root)):
            raise UnreadableManifestException(
                f"it names a file {each.name!r} at {each.path!r}, which is none of a store"
            )
    return manifest


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
