"""An open RocksDB in raw bytes: opening, reading in turn with closing, and the changelog offset.

The `offsets` column family holds the changelog offset up to which the data is complete, so that the two can't
disagree after a crash. Iterators and handles never leave a database: one that outlives `close` keeps the folder's
lock, and the store could not be opened again in this process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar, cast

from rocksdict import Checkpoint, DbClosedError, Rdict, WriteBatch

from streams_runtime.errors import ProcessorStateException, TaskCorruptedException
from streams_runtime.metrics.store_recorder import StoreRecorder
from streams_runtime.state.database.damaged_files import DAMAGED, is_damage
from streams_runtime.state.database.rocksdb_figures import properties_of, statistics_of
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions

_LOGGER = logging.getLogger("streams_runtime.state")
Pair = tuple[bytes, bytes]
DATA = "default"
OFFSETS = "offsets"
_CHANGELOG = b"changelog"
_TOPIC_ID = b"changelog-topic-id"
LAYOUT = b"layout"
"""Under what name, beside the offset, a database with segments says what is in them."""
_OFFSET_BYTES = 8
SCAN_CHUNK = 512  # pairs read under one lock; an open scan holds no RocksDB iterator between chunks
T = TypeVar("T")


class StoreClosed(Exception):
    """The store was closed; whoever holds it has to find out why."""


class Database:
    """One open RocksDB. Reads may come from any thread; writes from one thread at a time.

    What its families hold is for a subclass to say.
    """

    def __init__(
        self,
        folder: Path,
        families: Iterable[str] = (),
        measured: StoreRecorder | None = None,
        options: RocksDBOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Open, or make, the database in `folder` with these families beside the data's own and the offsets'.

        With `measured` RocksDB keeps statistics, and reads are timed. `options` need not be those of the last time.

        Raises:
            ProcessorStateException: the folder can't be used (space, rights, damage, in use).
        """
        self._folder = folder
        self._idle = threading.Condition()
        self._writing = threading.Lock()  # a checkpoint stands between two writes
        self._readers = 0
        self._closed = False
        self._measured = measured
        self._shared = options
        self._options = options.options()
        if measured is not None:
            self._options.enable_statistics()
        try:
            self._db = Rdict(
                str(folder),
                options=self._options,
                column_families={name: options.options() for name in (DATA, OFFSETS, *families)},
            )
            self._offsets = self._db.get_column_family(OFFSETS)
            self._offsets_handle = self._db.get_column_family_handle(OFFSETS)
        except Exception as error:  # rocksdict raises plain Exception
            raise failed(folder, "opened", error) from error
        options.opened(self)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def offset(self) -> int | None:
        """Changelog offset that comes next: all records before it are in the data. None: not known."""
        value = cast("bytes | None", self._read(lambda: self._offsets.get(_CHANGELOG)))
        if value is None:
            return None
        offset = int.from_bytes(value, "big", signed=True)
        if len(value) != _OFFSET_BYTES or offset < 0:
            _LOGGER.warning(
                "store %s has the checkpoint %r, which is no offset and counts as none", self._folder, value
            )
            return None
        return offset

    def topic_id(self) -> str | None:
        """Id of the topic that the changelog offset is one of. None: not known."""
        value = cast("bytes | None", self._read(lambda: self._offsets.get(_TOPIC_ID)))
        return None if value is None else value.decode()

    def layout(self) -> str:
        """The layout that contents in segments were written with; empty for what has none."""
        value = cast("bytes | None", self._read(lambda: self._offsets.get(LAYOUT)))
        return "" if value is None else value.decode()

    def follow(self, topic_id: str, offset: int | None) -> None:
        """Set the topic's id, and with it the changelog offset; None leaves that as it is."""

        def write() -> None:
            batch = WriteBatch(raw_mode=True)
            batch.put(_TOPIC_ID, topic_id.encode(), self._offsets_handle)
            self._put_offset(batch, offset)
            self._db.write(batch)

        self._write(write)

    def flush_soon(self) -> None:
        """Have RocksDB's own threads write to files what is in memory only; returns at once."""

        def flush() -> None:
            with self._writing:
                for family in (self._offsets, *self._data_families()):
                    family.flush(False)

        self._read(flush)

    def memtable_bytes(self) -> int:
        """Bytes that a flush would begin to give back; 0 while one is on its way, and when the database is closed."""

        def read() -> int:
            families = (self._offsets, *self._data_families())
            if any(family.property_int_value("rocksdb.num-immutable-mem-table") for family in families):
                return 0
            return sum(family.property_int_value("rocksdb.cur-size-active-mem-table") or 0 for family in families)

        try:
            return self._read(read)
        except (StoreClosed, ProcessorStateException):
            return 0

    def spill(self) -> None:
        """`flush_soon` on behalf of another database: what goes wrong is for whoever uses this one."""
        with suppress(StoreClosed, ProcessorStateException):
            self.flush_soon()

    def checkpoint(self, folder: Path) -> tuple[int | None, str | None] | None:
        """Hard links of all files in `folder`, which must not be there; returns the offset and the topic id in them.

        None, and nothing is done, while some of the data is in memory only: writing that takes long, and nothing of
        the process runs meanwhile. `flush_soon` first. May be called from any thread.

        Raises:
            StoreClosed, ProcessorStateException: there may be a part of the folder.
        """

        def link() -> tuple[int | None, str | None] | None:
            with self._writing:
                if any(_in_memory(family) for family in (self._offsets, *self._data_families())):
                    return None
                Checkpoint(self._db).create_checkpoint(str(folder))
                return self.offset(), self.topic_id()

        return self._read(link)

    def properties(self) -> dict[str, int]:
        """RocksDB's properties, by their names without `rocksdb.`; those of the families with data added up."""
        return self._read(lambda: properties_of(self._db, self._data_families()))

    def statistics(self) -> Mapping[str, int]:
        """RocksDB's statistics since the opening; empty where they are not kept."""
        return {} if self._measured is None else self._read(lambda: statistics_of(self._options.get_statistics()))

    def _data_families(self) -> Iterable[Rdict]:
        """The families that hold what was stored."""
        return (self._db,)

    def close(self) -> None:
        """Wait for running reads, flush and close; the folder can be opened again at once. May be called twice."""
        with self._idle:
            if self._closed:
                return
            self._closed = True
            self._idle.wait_for(lambda: not self._readers)
        self._shared.closing(self)
        if self._measured is not None:
            self._measured.closed(statistics_of(self._options.get_statistics()))
        del self._offsets_handle
        try:
            try:
                self._close_families()
            finally:
                try:
                    self._offsets.close()
                finally:
                    self._db.close()
        except Exception as error:
            raise failed(self._folder, "closed", error) from error

    def _close_families(self) -> None:
        """Flush and let go of what a subclass holds of its families."""

    def _scan(
        self, family: Callable[[], Rdict | None], start: bytes | None, end: bytes | None, reverse: bool
    ) -> Iterator[Pair]:
        """Pairs of a family with start <= key <= end in byte order, or in reverse; None leaves that side open.

        Reads in chunks, so the scan holds nothing that would keep the database from closing: `family` is asked for
        the family at each chunk, and ends the scan by None. It sees writes that land beyond its present position.
        Raises StoreClosed at the next chunk once the database is closed.
        """
        position, first = (end, start) if reverse else (start, end)
        skip_position = False
        while True:
            chunk = self._chunk(family, position, first, reverse, skip_position)
            yield from chunk
            if len(chunk) < SCAN_CHUNK:
                return
            position, skip_position = chunk[-1][0], True

    def _chunk(
        self,
        family: Callable[[], Rdict | None],
        position: bytes | None,
        last: bytes | None,
        reverse: bool,
        skip: bool,
        limit: int = SCAN_CHUNK,
    ) -> list[Pair]:
        def read() -> list[Pair]:
            found = family()
            if found is None:
                return []
            items = cast("Iterator[Pair]", found.items(backwards=reverse, from_key=position))
            pairs: list[Pair] = []
            for key, value in islice(items, limit + 1):
                if skip and key == position:
                    continue
                if last is not None and (key < last if reverse else key > last):
                    break
                pairs.append((key, value))
                if len(pairs) == limit:
                    break
            else:
                del items  # an exception's traceback would keep it, and with it the folder's lock
                _check_end(found, pairs[-1][0] if pairs else position, reverse)
            return pairs

        return self._read(read)

    def _put_offset(self, batch: WriteBatch, offset: int | None) -> None:
        """Let the batch set the changelog offset; None leaves it."""
        if offset is not None:
            batch.put(_CHANGELOG, offset.to_bytes(_OFFSET_BYTES, "big"), self._offsets_handle)

    def _read(self, operation: Callable[[], T]) -> T:
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
            raise failed(self._folder, "read", error) from error
        finally:
            with self._idle:
                self._readers -= 1
                self._idle.notify_all()

    def _read_keys(self, keys: int, operation: Callable[[], T]) -> T:
        """Read so many keys at once."""
        measured = self._measured
        if measured is None:
            return self._read(operation)
        began = time.perf_counter()
        found = self._read(operation)
        measured.got(keys, time.perf_counter() - began)
        return found

    def _write(self, operation: Callable[[], None]) -> None:
        if self._closed:
            raise StoreClosed
        try:
            with self._writing:
                operation()
        except DbClosedError as error:
            raise StoreClosed from error
        except Exception as error:
            raise failed(self._folder, "written", error) from error
        self._shared.written()


def _in_memory(family: Rdict) -> bool:
    names = ("num-entries-active-mem-table", "num-immutable-mem-table")
    return any(family.property_int_value(f"rocksdb.{name}") for name in names)


def _check_end(family: Rdict, position: bytes | None, reverse: bool) -> None:
    """Raise when pairs ended at damage: rocksdict's own iteration stops there as it does after the last pair."""
    walk = family.iter()
    try:
        if position is None:
            walk.seek_to_last() if reverse else walk.seek_to_first()
        else:
            walk.seek_for_prev(position) if reverse else walk.seek(position)
            if walk.valid():
                walk.prev() if reverse else walk.next()
        walk.status()
    finally:
        del walk


def failed(path: Path, verb: str, error: Exception) -> ProcessorStateException:
    """What a failure of RocksDB becomes; damage is noted, so that whoever has the task hears of it."""
    reason = str(error)
    if is_damage(reason, path):
        DAMAGED.note(path, reason)
        return TaskCorruptedException(
            f"store {path} can't be {verb}, its files are damaged: {reason}. They are set aside and the store is"
            " restored from its changelog; in a stopped application the folder may be deleted and is restored at the"
            " next start"
        )
    return ProcessorStateException(
        f"store {path} can't be {verb}: {reason}. Check the disk's free space and the folder's rights; the changelog"
        " has all data, so the folder may be deleted and is restored at the next start"
    )
