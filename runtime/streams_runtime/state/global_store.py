"""The store of a global table: all partitions of its topic, with the offset of each, in one database."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.store_recorder import StoreRecorder
from streams_runtime.state.database.rocksdb_adapter import RocksDB
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions
from streams_runtime.state.store import KeyValueStore, Updates

_PREFIX = b"partition-"  # of a partition's offset; its number follows in 4 bytes
_NUMBER_BYTES, _OFFSET_BYTES = 4, 8
_LAST = _PREFIX + b"\xff" * _NUMBER_BYTES


class _Database(RocksDB):
    """A database with an offset for each of several partitions."""

    def offsets(self) -> dict[int, int]:
        """The offset that comes next, by partition; one that is no offset counts as none."""
        most = 1 << 8 * _NUMBER_BYTES
        found = self._chunk(lambda: self._offsets, _PREFIX, _LAST, reverse=False, skip=False, limit=most)
        read = ((key, int.from_bytes(value, "big", signed=True), len(value)) for key, value in found)
        return {
            int.from_bytes(key.removeprefix(_PREFIX), "big"): offset
            for key, offset, size in read
            if size == _OFFSET_BYTES and offset >= 0
        }

    def write_through(self, updates: Updates, offsets: Mapping[int, int]) -> None:
        """Put and delete, and set the offsets of these partitions, in one atomic write."""

        def write() -> None:
            batch = self._batch(updates.keys, updates.stored(), None)
            for number, offset in offsets.items():
                key = _PREFIX + number.to_bytes(_NUMBER_BYTES, "big")
                batch.put(key, offset.to_bytes(_OFFSET_BYTES, "big", signed=True), self._offsets_handle)
            self._db.write(batch)

        self._write(write)


class GlobalStore(KeyValueStore):
    """A key-value store that has the whole of a topic; to queries it is one partition, number 0.

    It has no offset of its own (`offset` is None), but one for each partition of the topic. One thread writes.
    """

    takes_files = False
    _database: _Database

    def __init__(
        self,
        name: str,
        topic: str,
        folder: Path,
        measured: StoreRecorder | None = None,
        options: RocksDBOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Raises ProcessorStateException: the folder can't be used."""
        super().__init__(name, TopicPartition(topic, 0), folder, measured, options)

    def _open(self) -> None:
        self._database = _Database(self.folder, measured=self._measured, options=self.options)

    def offsets(self) -> dict[int, int]:
        """The offset that comes next of each partition that is known: all records before it are in the store."""
        return self._database.offsets()

    def write_through(self, updates: Updates, offsets: Mapping[int, int]) -> None:
        """Put and delete, and set the offsets of these partitions, in one atomic write.

        Raises:
            ProcessorStateException: the disk is full or damaged; nothing was written.
        """
        self._database.write_through(updates, offsets)
