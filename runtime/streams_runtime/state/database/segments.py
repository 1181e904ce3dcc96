"""A database in segments of time: each a column family, which is dropped whole when all that is in it has expired.

Dropping a family deletes its files at once, whatever is in them, and is atomic by itself. It comes after the write
that lets the segment expire: a crash in between leaves a segment that nobody reads, and that is dropped at the next
opening.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rocksdict import ColumnFamily, Rdict, WriteBatch

from streams_runtime.errors import ProcessorStateException
from streams_runtime.metrics.store_recorder import StoreRecorder
from streams_runtime.state.database.open_database import DATA, LAYOUT, OFFSETS, Database, Pair, failed
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions

NO_TIME = -1
"""The stream time of a store that has seen no record, as in Kafka Streams."""
_STREAM_TIME = b"stream-time"
_LATEST = b"latest-timestamp"
_PREFIX = "segment."

Change = tuple[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class _Segment:
    family: Rdict
    handle: ColumnFamily


class SegmentFamilies(Database):
    """Families that are numbered by time; beside the changelog offset lies the stream time.

    What is in a family is for a subclass to say.
    """

    def __init__(
        self,
        folder: Path,
        layout: str,
        measured: StoreRecorder | None = None,
        options: RocksDBOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Open, or make, the database in `folder`; `layout` says what its owner writes there, and in which segments.

        Raises:
            ProcessorStateException: the folder can't be used (space, rights, damage, in use).
        """
        # Replaced as a whole, never changed: other threads read it.
        self._segments: Mapping[int, _Segment] = {}
        names = segment_families(folder)
        super().__init__(folder, names, measured, options)
        try:
            for name in names:
                self._adopt(int(name.removeprefix(_PREFIX)), self._db.get_column_family(name))
            if not self.layout() and self.offset() is None:
                self._write(lambda: self._offsets.put(LAYOUT, layout.encode()))
        except Exception:
            with suppress(ProcessorStateException):
                self.close()
            raise

    @property
    def segments(self) -> tuple[int, ...]:
        """The segments that there are, oldest first."""
        return tuple(sorted(self._segments))

    def stream_time(self) -> int:
        """The largest time that was written, NO_TIME when there is none."""
        return self._time(_STREAM_TIME)

    def latest_timestamp(self) -> int:
        """The largest timestamp that was written, NO_TIME when there is none."""
        return self._time(_LATEST)

    def drop_before(self, segment: int) -> None:
        """Drop all older segments with all that is in them. Reads that are on their way in one of them end early."""

        def drop() -> None:
            for number in self.segments:
                if number < segment:
                    self._db.drop_column_family(_name(number))
                    self._segments = {n: each for n, each in self._segments.items() if n != number}

        self._write(drop)

    def _write_all(
        self,
        changes: Mapping[int, Sequence[Change]],
        beside: Sequence[Change],
        stream_time: int,
        latest: int,
        offset: int | None,
    ) -> None:
        """Put (or, for None, delete) pairs in their segments and, of `beside`, in the data's own family, set both
        times and the offset, in one atomic write.
        """

        def write() -> None:
            batch = WriteBatch(raw_mode=True)
            for key, value in beside:
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)
            for number, pairs in changes.items():
                handle = self._made(number).handle
                for key, value in pairs:
                    if value is None:
                        batch.delete(key, handle)
                    else:
                        batch.put(key, value, handle)
            for name, time in ((_STREAM_TIME, stream_time), (_LATEST, latest)):
                batch.put(name, time.to_bytes(8, "big", signed=True), self._offsets_handle)
            self._put_offset(batch, offset)
            self._db.write(batch)

        self._write(write)

    def _get_in(self, segment: int, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values of `keys` in one segment, in their order; None where there is none."""

        def read() -> list[bytes | None]:
            found = self._segments.get(segment)
            return [None] * len(keys) if found is None else cast("list[bytes | None]", found.family.get(list(keys)))

        return self._read_keys(len(keys), read)

    def _time(self, name: bytes) -> int:
        value = self._read(lambda: self._offsets.get(name))
        return NO_TIME if value is None else int.from_bytes(cast(bytes, value), "big", signed=True)

    def _family(self, segment: int) -> Rdict | None:
        found = self._segments.get(segment)
        return None if found is None else found.family

    def _made(self, number: int) -> _Segment:
        if number not in self._segments:
            self._adopt(number, self._db.create_column_family(_name(number), self._shared.options()))
        return self._segments[number]

    def _adopt(self, number: int, family: Rdict) -> None:
        segment = _Segment(family, self._db.get_column_family_handle(_name(number)))
        self._segments = {**self._segments, number: segment}

    def _close_families(self) -> None:
        segments, self._segments = self._segments, {}
        with ExitStack() as closing:
            for segment in segments.values():
                closing.callback(segment.family.close)


class SegmentedDatabase(SegmentFamilies):
    """Pairs in segments."""

    def get(self, segment: int, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values of `keys` in one segment, in their order; None where there is none."""
        return self._get_in(segment, keys)

    def _data_families(self) -> Iterable[Rdict]:
        return [each.family for each in self._segments.values()]

    def scan(self, segment: int, start: bytes | None, end: bytes | None, *, reverse: bool = False) -> Iterator[Pair]:
        """Pairs of one segment with start <= key <= end in byte order, or in reverse.

        Ends when the segment is dropped meanwhile. Raises StoreClosed once the store is closed, at its next chunk.
        """
        return self._scan(lambda: self._family(segment), start, end, reverse)

    def write(self, changes: Mapping[int, Sequence[Change]], stream_time: int, latest: int, offset: int | None) -> None:
        """Put (or, for None, delete) pairs in their segments, set both times and the offset, in one atomic write.

        Segments that are not there are made; `offset` None leaves the recorded one as it is.
        """
        self._write_all(changes, (), stream_time, latest, offset)

    def approximate_num_entries(self) -> int:
        """RocksDB's estimate of the number of keys, over all segments."""

        def read() -> int:
            found = [each.family.property_int_value("rocksdb.estimate-num-keys") for each in self._segments.values()]
            return sum(int(each or 0) for each in found)

        return self._read(read)

    def is_empty(self) -> bool:
        """Whether no key is stored."""
        return not any(
            self._chunk(lambda number=number: self._family(number), None, None, False, False, limit=1)  # type: ignore[misc]
            for number in self._segments
        )


def _name(segment: int) -> str:
    return f"{_PREFIX}{segment}"


def segment_families(folder: Path) -> list[str]:
    """The families of a database's segments; none where there is no database yet."""
    if not (folder / "CURRENT").is_file():
        return []
    try:
        return [name for name in Rdict.list_cf(str(folder)) if name not in (DATA, OFFSETS)]
    except Exception as error:
        raise failed(folder, "opened", error) from error
