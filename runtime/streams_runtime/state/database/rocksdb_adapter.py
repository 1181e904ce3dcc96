"""RocksDB behind a narrow adapter: bytes in, bytes out, data and changelog offset in one atomic write."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import cast

from rocksdict import IngestExternalFileOptions, ReadOptions, SstFileWriter, WriteBatch

from streams_runtime.state.database.open_database import Database, Pair, StoreClosed, failed
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions

__all__ = ["Pair", "RocksDB", "StoreClosed", "write_sst"]
# Keys from which on a walk over them may be worth its start, and pairs read of it at once.
_MANY = 1024
_CHUNK = 256
# Pairs that a walk may read for each key that is asked for. From 1.6 on point reads cost no more.
_PAIRS_A_KEY = 1.3
# Deleted pairs that a walk passes over at once, at most; where there are more of them it ends.
_DELETED = 1000


class RocksDB(Database):
    """A database with all of its pairs in one family."""

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values of `keys`, in their order; None where there is none. Sorted keys are read faster."""
        return self._read_keys(len(keys), lambda: self._values(keys))

    def at_hand(self, key: bytes) -> tuple[bool, bytes | None]:
        """Whether it is known without reading from a disk what the key has, and what that is; None: nothing."""
        found = self._read(lambda: self._db.key_may_exist(key, fetch=True))
        there, value = cast("tuple[bool, bytes | None]", found)
        return value is not None or not there, value

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

        The scan holds nothing that would keep the database from closing; it sees writes that land beyond its
        present position. Raises StoreClosed once the store is closed, at its next chunk.
        """
        return self._scan(lambda: self._db, start, end, reverse)

    def approximate_num_entries(self) -> int:
        """RocksDB's estimate of the number of keys."""
        return int(self._read(lambda: self._db.property_int_value("rocksdb.estimate-num-keys")) or 0)

    def is_empty(self) -> bool:
        """Whether no key is stored."""
        return not self._chunk(lambda: self._db, None, None, reverse=False, skip=False, limit=1)

    def _values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if len(keys) < _MANY:
            return self._points(keys)
        found, passed = self._walked(keys)
        values: list[bytes | None] = [found.get(key) for key in keys[:passed]]
        # What was passed and not found is not there, unless the keys are not sorted. A walk ends at damage as it does
        # at the last pair; point reads of the keys behind it say which it was.
        missed = [row for row, value in enumerate(values) if value is None]
        read = self._points([*(keys[row] for row in missed), *keys[passed:]])
        for row, value in zip(missed, read, strict=False):
            values[row] = value
        return values + read[len(missed) :]

    def _points(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return cast("list[bytes | None]", self._db.get(list(keys)))

    def _walked(self, keys: Sequence[bytes]) -> tuple[dict[bytes, bytes], int]:
        """What lies between the first and the last of sorted keys, as far as they lie close together, and how many of
        them that far are.
        """
        found: dict[bytes, bytes] = {}
        passed = 0
        pairs = cast("Iterator[Pair]", self._db.items(from_key=keys[0], read_opt=_walking()))
        try:
            while passed < len(keys) and len(found) <= _PAIRS_A_KEY * passed:
                some = list(islice(pairs, _CHUNK))
                if not some:
                    break
                found.update(some)
                passed = bisect_right(keys, some[-1][0])
            return found, passed
        finally:
            del pairs  # an exception's traceback would keep it, and with it the folder's lock

    def _batch(self, keys: Sequence[bytes], values: Sequence[bytes | None], offset: int | None) -> WriteBatch:
        batch = WriteBatch(raw_mode=True)
        for key, value in zip(keys, values, strict=True):
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        self._put_offset(batch, offset)
        return batch


def _walking() -> ReadOptions:
    options = ReadOptions()
    options.set_max_skippable_internal_keys(_DELETED)
    return options


def write_sst(
    path: Path, pairs: Iterable[tuple[bytes, bytes | None]], options: RocksDBOptions = DEFAULT_OPTIONS
) -> None:
    """Write `pairs`, sorted by key without repetition, as an SST file for a database with these options; None is a
    deletion.

    Raises:
        ProcessorStateException: the file can't be written.
    """
    try:
        writer = SstFileWriter(options=options.options())
        writer.open(str(path))
        for key, value in pairs:
            if value is None:
                del writer[key]
            else:
                writer[key] = value
        writer.finish()
    except Exception as error:
        raise failed(path, "written", error) from error
