"""What every store's partition is, and the key-value store: values with their timestamps (KIP-258), over RocksDB."""

from __future__ import annotations

import logging
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.errors import ProcessorStateException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.store_recorder import StoreRecorder
from streams_runtime.state.database.damaged_files import DAMAGED
from streams_runtime.state.database.open_database import Database
from streams_runtime.state.database.rocksdb_adapter import RocksDB
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions
from streams_runtime.state.database.segments import segment_families
from streams_runtime.state.state_directory import DELETED

_LOGGER = logging.getLogger("streams_runtime.state")
_TIMESTAMP_BYTES = 8


def stamp(timestamp: int, value: bytes) -> bytes:
    """The stored form of a value: 8 bytes of timestamp (ms, big-endian), then the value."""
    return timestamp.to_bytes(_TIMESTAMP_BYTES, "big", signed=True) + value


# pa.scalar would import pandas, to see that it is given none of it.
_EMPTY = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(bytes(16)), pa.py_buffer(b"")])[0]


def stamped(timestamps: npt.NDArray[np.int64], values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The stored forms of many values; null stays null."""
    times = pa.py_buffer(timestamps.astype(">i8"))
    offsets = pa.py_buffer(np.arange(0, (len(values) + 1) * _TIMESTAMP_BYTES, _TIMESTAMP_BYTES, dtype=np.int64))
    prefixes = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(values), [None, offsets, times])
    return pc.binary_join_element_wise(prefixes, values, _EMPTY)


def unstamp(stored: bytes) -> tuple[int, bytes]:
    """Timestamp (ms) and value of a stored form."""
    return int.from_bytes(stored[:_TIMESTAMP_BYTES], "big", signed=True), stored[_TIMESTAMP_BYTES:]


@dataclass(frozen=True, slots=True)
class Updates:
    """New contents for some keys of one partition: None deletes, timestamps in ms.

    Keys are there once each, but for a store that `keeps_versions`.
    """

    keys: Sequence[bytes]
    values: Sequence[bytes | None]
    timestamps: Sequence[int]

    def __len__(self) -> int:
        return len(self.keys)

    def stored(self) -> list[bytes | None]:
        """The values as they are stored."""
        return [
            None if value is None else timestamp.to_bytes(8, "big", signed=True) + value
            for value, timestamp in zip(self.values, self.timestamps, strict=True)
        ]


class LocalStore(ABC):
    """One partition of a store of any kind, with the changelog partition that it can be restored from.

    Reads may come from any thread and raise database.StoreClosed once the store is closed; everything that writes is
    called by the thread that has the task. All may raise ProcessorStateException: the disk is full or damaged.
    """

    takes_files = True
    """Whether `ingest` is for this kind; the others are restored record by record."""
    keeps_versions = False
    """Whether a write may have several updates of a key, all of which count, in their order."""
    _database: Database

    def __init__(
        self,
        name: str,
        changelog: TopicPartition,
        folder: Path,
        measured: StoreRecorder | None = None,
        options: RocksDBOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Open the store in `folder`, or make it; `measured`: what measures its reads."""
        self.name = name
        self.changelog = changelog
        self.folder = folder
        self.options = options
        """The options of its database, which files for `ingest` are written with too."""
        self._measured = measured
        self._open()

    @property
    def partition(self) -> int:
        """The task's partition, which is the changelog's."""
        return self.changelog.partition

    @property
    def is_open(self) -> bool:
        """Whether the store can be read."""
        return not self._database.closed

    def offset(self) -> int | None:
        """The changelog offset that comes next; None when the store has no checkpoint."""
        return self._database.offset()

    def topic_id(self) -> str | None:
        """Id of the topic that the offset is one of; None when it is not known."""
        return self._database.topic_id()

    def follow(self, topic_id: str, offset: int | None = None) -> None:
        """Go on with the topic of this id: from `offset` on, or from where the store is."""
        self._database.follow(topic_id, offset)

    @property
    def format(self) -> str:
        """How contents lie on disk: files of a store with another one are not this store's."""
        return "key-value, version 1"

    def flush_soon(self) -> None:
        """Have what is in memory only written to files by RocksDB's own threads; returns at once."""
        self._database.flush_soon()

    def checkpoint(self, folder: Path) -> tuple[int | None, str | None] | None:
        """Hard links of all files in `folder`, between two writes; their offset and topic id (Database.checkpoint)."""
        return self._database.checkpoint(folder)

    @abstractmethod
    def write(self, updates: Updates, offset: int | None) -> None:
        """Put and delete, and set the changelog offset, in one atomic write; `offset` None leaves it.

        Keys are those of the changelog.
        """

    @abstractmethod
    def ingest(self, files: Sequence[Path], offset: int) -> None:
        """Take over SST files of stored forms, later ones winning, then set the offset."""

    @abstractmethod
    def get(self, key: bytes) -> bytes | None:
        """The value of a key of the changelog, without its timestamp."""

    @abstractmethod
    def approximate_num_entries(self) -> int:
        """RocksDB's estimate of the number of keys."""

    def properties(self) -> dict[str, int]:
        """RocksDB's properties, by their names without `rocksdb.` (KIP-607)."""
        return self._database.properties()

    def statistics(self) -> Mapping[str, int]:
        """RocksDB's statistics since the opening (KIP-471); empty where they are not kept."""
        return self._database.statistics()

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether no key is stored."""

    def wipe(self) -> None:
        """Throw all contents and the checkpoint away; the store stays open, and is empty.

        Raises:
            ProcessorStateException: the folder can't be deleted.
        """
        self._database.close()
        self.start_empty()

    def adopt(self, folder: Path) -> None:
        """Go on with the files in `folder`, which are taken from there, and throw away what the store has.

        Raises:
            ProcessorStateException: they can't be opened, or moved. The store is closed then: `start_empty` opens it.
        """
        self._database.close()
        self._remove()
        try:
            folder.rename(self.folder)
        except OSError as error:
            raise ProcessorStateException(f"{folder} can't become {self.folder}: {error.strerror}") from error
        self._open()

    def start_empty(self) -> None:
        """Open the store with nothing in it, whatever lies in its folder; it may be closed.

        Raises:
            ProcessorStateException: the folder can't be deleted.
        """
        self._database.close()
        self._remove()
        self._open()

    def _remove(self) -> None:
        """Moved away first, so that a process that is killed here leaves the whole store or none, not a damaged one."""
        DAMAGED.forget(self.folder)
        place = self.folder.parent.parent / DELETED / f"{self.folder.name}.{uuid.uuid4().hex[:8]}"
        try:
            place.parent.mkdir(exist_ok=True)
            self.folder.rename(place)
            shutil.rmtree(place)
        except FileNotFoundError:
            return
        except OSError as error:
            raise ProcessorStateException(
                f"store {self.folder} can't be deleted: {error.strerror}. Check the folder's rights; it may be deleted"
                " by hand while the application is stopped"
            ) from error

    def close(self) -> None:
        """Flush and close. May be called twice."""
        self._database.close()

    @abstractmethod
    def _open(self) -> None:
        """Open the database of `folder`, or make it."""


class KeyValueStore(LocalStore):
    """One partition of a key-value store."""

    _database: RocksDB

    def _open(self) -> None:
        if segment_families(self.folder):  # which RocksDB does not open without
            self._begin_anew()
        self._database = RocksDB(self.folder, measured=self._measured, options=self.options)
        if self._database.layout():  # a history of which nothing is there yet
            self._database.close()
            self._begin_anew()
            self._database = RocksDB(self.folder, measured=self._measured, options=self.options)

    def _begin_anew(self) -> None:
        _LOGGER.warning(
            "Store %s was one with segments of time, and is a key-value store now: its kind was changed, or its history"
            " taken away. It is wiped and restored from its changelog",
            self.folder,
        )
        self._remove()

    def get(self, key: bytes) -> bytes | None:
        stored = self._database.get([key])[0]
        return None if stored is None else stored[_TIMESTAMP_BYTES:]

    def at_hand(self, key: bytes) -> tuple[bool, bytes | None]:
        """Whether the value is known without reading from a disk, and the value as `get` gives it."""
        known, stored = self._database.at_hand(key)
        return known, None if stored is None else stored[_TIMESTAMP_BYTES:]

    def get_stored(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Stored forms (see `stamp`) of many keys, in their order; sorted keys are read faster."""
        return self._database.get(keys)

    def scan(self, start: bytes | None, end: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values with start <= key <= end in byte order, or in reverse."""
        for key, stored in self._database.scan(start, end, reverse=reverse):
            yield key, stored[_TIMESTAMP_BYTES:]

    def approximate_num_entries(self) -> int:
        return self._database.approximate_num_entries()

    def is_empty(self) -> bool:
        return self._database.is_empty()

    def write(self, updates: Updates, offset: int | None) -> None:
        self._database.write(updates.keys, updates.stored(), offset)

    def ingest(self, files: Sequence[Path], offset: int) -> None:
        self._database.ingest(files, offset)
