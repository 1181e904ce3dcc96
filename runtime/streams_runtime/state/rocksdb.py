"""RocksDB behind a narrow adapter: bytes in, bytes out, data and changelog offset in one atomic write.

The `offsets` column family holds the changelog offset up to which the data is complete, so that the two can't
disagree after a crash. Iterators and handles never leave this file: an iterator that outlives `close` keeps the
folder's lock, and the store could not be opened again in this process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar, cast

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DbClosedError,
    IngestExternalFileOptions,
    Options,
    Rdict,
    SstFileWriter,
    WriteBatch,
)

from streams_runtime.errors import ProcessorStateException

Pair = tuple[bytes, bytes]
_OFFSETS = "offsets"
_CHANGELOG = b"changelog"
_SCAN_CHUNK = 512  # pairs read under one lock; an open scan holds no RocksDB iterator between chunks
_WRITE_BUFFER_BYTES = 16 * 1024 * 1024  # Kafka Streams' own default for a store
_BLOCK_CACHE_BYTES = 50 * 1024 * 1024
# Shared by all stores of the process, so that memory does not grow with the number of partitions.
_block_cache = Cache(_BLOCK_CACHE_BYTES)
_T = TypeVar("_T")


class StoreClosed(Exception):
    """The store was closed; whoever holds it has to find out why."""


class RocksDB:
    """One open RocksDB in raw bytes. Reads may come from any thread; writes from one thread at a time."""

    def __init__(self, folder: Path) -> None:
        """Open, or make, the database in `folder`.

        Raises:
            ProcessorStateException: the folder can't be used (space, rights, damage, in use).
        """
        self._folder = folder
        self._idle = threading.Condition()
        self._readers = 0
        self._closed = False
        try:
            families = {"default": _options(), _OFFSETS: _options()}
            self._db = Rdict(str(folder), options=_options(), column_families=families)
            self._offsets = self._db.get_column_family(_OFFSETS)
            self._offsets_handle = self._db.get_column_family_handle(_OFFSETS)
        except Exception as error:  # rocksdict raises plain Exception
            raise _failed(folder, "opened", error) from error

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def offset(self) -> int | None:
        """Changelog offset that comes next: all records before it are in the data. None: not known."""
        value = self._read(lambda: self._offsets.get(_CHANGELOG))
        return None if value is None else int.from_bytes(cast(bytes, value), "big")

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values of `keys`, in their order; None where there is none. Sorted keys are read faster."""
        return cast("list[bytes | None]", self._read(lambda: self._db.get(list(keys))))

    def write(self, keys: Sequence[bytes], values: Sequence[bytes | None], offset: int | None) -> None:
        """Put (or, for None, delete) all pairs and set the changelog offset, in one atomic write.

        `offset` None leaves the recorded offset as it is.
        """
        if self._closed:
            raise StoreClosed
        self._write(lambda: self._db.write(self._batch(keys, values, offset)))

    def ingest(self, files: Sequence[Path], offset: int) -> None:
        """Take over SST files (later ones win) and then set the offset.

        The two are not one write. A crash in between leaves the data without an offset, or with the one before:
        the same records are then applied again, to the same end.
        """
        if files:
            options = IngestExternalFileOptions()
            options.set_move_files(True)
            for file in files:
                self._write(lambda file=file: self._db.ingest_external_file([str(file)], options))  # type: ignore[misc]
        self.write([], [], offset)

    def scan(self, start: bytes | None, end: bytes | None, *, reverse: bool = False) -> Iterator[Pair]:
        """Pairs with start <= key <= end in byte order, or in reverse; None leaves that side open.

        Reads in chunks, so the scan holds nothing that would keep the database from closing; it sees writes that
        land beyond its present position. Raises StoreClosed at the next chunk once the store is closed.
        """
        position, first = (end, start) if reverse else (start, end)
        skip_position = False
        while True:
            chunk = self._chunk(position, first, reverse, skip_position)
            yield from chunk
            if len(chunk) < _SCAN_CHUNK:
                return
            position, skip_position = chunk[-1][0], True

    def approximate_num_entries(self) -> int:
        """RocksDB's estimate of the number of keys."""
        return int(self._read(lambda: self._db.property_int_value("rocksdb.estimate-num-keys")) or 0)

    def is_empty(self) -> bool:
        """Whether no key is stored."""
        return not self._chunk(None, None, False, False, limit=1)

    def close(self) -> None:
        """Wait for running reads, flush and close; the folder can be opened again at once. May be called twice."""
        with self._idle:
            if self._closed:
                return
            self._closed = True
            self._idle.wait_for(lambda: not self._readers)
        del self._offsets_handle
        try:
            try:
                self._offsets.close()
            finally:
                self._db.close()
        except Exception as error:
            raise _failed(self._folder, "closed", error) from error

    def _chunk(
        self, position: bytes | None, last: bytes | None, reverse: bool, skip: bool, limit: int = _SCAN_CHUNK
    ) -> list[Pair]:
        def read() -> list[Pair]:
            items = cast("Iterator[Pair]", self._db.items(backwards=reverse, from_key=position))
            pairs: list[Pair] = []
            for key, value in islice(items, limit + 1):
                if skip and key == position:
                    continue
                if last is not None and (key < last if reverse else key > last):
                    break
                pairs.append((key, value))
                if len(pairs) == limit:
                    break
            return pairs

        return self._read(read)

    def _batch(self, keys: Sequence[bytes], values: Sequence[bytes | None], offset: int | None) -> WriteBatch:
        batch = WriteBatch(raw_mode=True)
        for key, value in zip(keys, values, strict=True):
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        if offset is not None:
            batch.put(_CHANGELOG, offset.to_bytes(8, "big"), self._offsets_handle)
        return batch

    def _read(self, operation: Callable[[], _T]) -> _T:
        # RocksDB can't be closed under a running read, so close() waits until nobody reads.
        with self._idle:
            if self._closed:
                raise StoreClosed
            self._readers += 1
        try:
            return operation()
        except DbClosedError as error:
            raise StoreClosed from error
        except Exception as error:
            raise _failed(self._folder, "read", error) from error
        finally:
            with self._idle:
                self._readers -= 1
                self._idle.notify_all()

    def _write(self, operation: Callable[[], None]) -> None:
        if self._closed:
            raise StoreClosed
        try:
            operation()
        except DbClosedError as error:
            raise StoreClosed from error
        except Exception as error:
            raise _failed(self._folder, "written", error) from error


def write_sst(path: Path, pairs: Iterable[tuple[bytes, bytes | None]]) -> None:
    """Write `pairs`, sorted by key without repetition, as an SST file; None is a deletion.

    Raises:
        ProcessorStateException: the file can't be written.
    """
    try:
        writer = SstFileWriter(options=_options())
        writer.open(str(path))
        for key, value in pairs:
            if value is None:
                del writer[key]
            else:
                writer[key] = value
        writer.finish()
    except Exception as error:
        raise _failed(path, "written", error) from error


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
    options.set_keep_log_file_num(1)
    options.set_max_open_files(256)
    table = BlockBasedOptions()
    table.set_block_cache(_block_cache)
    table.set_bloom_filter(10, False)
    options.set_block_based_table_factory(table)
    return options


def _failed(path: Path, verb: str, error: Exception) -> ProcessorStateException:
    return ProcessorStateException(
        f"store {path} can't be {verb}: {error}. Check the disk's free space and the folder's rights; the changelog"
        " has all data, so the folder may be deleted and is restored at the next start"
    )
