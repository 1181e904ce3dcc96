"""Window and session stores: records in segments of time, of which expired ones are never seen again."""

from __future__ import annotations

import heapq
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path

from streams_runtime.errors import NotSupportedException, ProcessorStateException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.store_recorder import StoreRecorder
from streams_runtime.state.database.open_database import Pair
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions
from streams_runtime.state.database.segments import NO_TIME, Change, SegmentedDatabase
from streams_runtime.state.store import LocalStore, Updates, unstamp
from streams_runtime.state.window_keys import LATEST, SESSION_KEYS, WINDOW_KEYS, KeySchema, largest_with_suffix

_LOGGER = logging.getLogger("streams_runtime.state")


class SegmentedStore(LocalStore):
    """One partition of a store that keeps records for `retention` ms of stream time, by the times in their keys.

    Stream time is the largest time that was written, deletions included; it lies in the store. A record whose time is
    `retention` or more behind it is not shown, and is dropped with its segment. What is shown does not depend on how
    writes were put together, nor on crashes and restorations in between.
    """

    takes_files = False
    _kind: str
    _keys: KeySchema
    _stamped: bool  # whether values lie in the store with their timestamps
    _stream_time: int
    _latest: int
    _database: SegmentedDatabase

    def __init__(
        self,
        name: str,
        changelog: TopicPartition,
        folder: Path,
        retention: int,
        segment_interval: int,
        measured: StoreRecorder | None = None,
        options: RocksDBOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Times in ms. What another kind of store wrote, or one with other segments, is thrown away and restored."""
        self.retention = retention
        self.segment_interval = segment_interval
        self.expired_records = 0
        """How many records were dropped because they had expired before they were written, since the opening."""
        super().__init__(name, changelog, folder, measured, options)

    @property
    def stream_time(self) -> int:
        """The largest time that was written (ms); -1 when there is none."""
        return self._stream_time

    @property
    def latest_timestamp(self) -> int:
        """The largest timestamp (ms) of all records that were written, -1 when there is none.

        A windowed aggregate writes the largest time of a window's records: this is how far its own stream time has
        come, also after a restoration.
        """
        return self._latest

    @property
    def keys(self) -> KeySchema:
        """How the keys of its changelog are written."""
        return self._keys

    @property
    def segments(self) -> tuple[int, ...]:
        """The numbers of the segments that there are: time // segment interval."""
        return self._database.segments

    @property
    def format(self) -> str:
        return f"{self._layout}, version 1"

    def get(self, key: bytes) -> bytes | None:
        stored = self.get_stored([key])[0]
        return None if stored is None else self._value(stored)

    def get_stored(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Stored forms of the values of many keys of the changelog, in their order; None for what has expired."""
        earliest = self._earliest_shown()
        by_segment: defaultdict[int, list[int]] = defaultdict(list)
        for at, key in enumerate(keys):
            time = self._keys.segment_time(key)
            if time >= earliest:
                by_segment[time // self.segment_interval].append(at)
        found: list[bytes | None] = [None] * len(keys)
        for segment, numbers in by_segment.items():
            values = self._database.get(segment, [keys[at] for at in numbers])
            for at, value in zip(numbers, values, strict=True):
                found[at] = value
        return found

    def fetch(
        self, from_key: bytes | None, to_key: bytes | None, earliest: int, latest: int, *, reverse: bool = False
    ) -> Iterator[Pair]:
        """Records with from_key <= key <= to_key by the record's key, and between the times, all inclusive.

        Of windows the start is meant; of sessions all are found that end at `earliest` or later and start at
        `latest` or earlier. Gives the changelog's keys and the values, in byte order of these keys, or in reverse.
        None leaves that side open; times in ms, of any size.
        """
        earliest = max(earliest, self._earliest_shown())
        latest = min(latest, LATEST)
        if earliest > self._keys.last_segment_time(latest) or latest < 0:
            return iter(())
        if from_key is not None and to_key is not None and from_key > to_key:
            return iter(())
        start, end = self._bounds(from_key, to_key, earliest, latest)
        last = self._keys.last_segment_time(latest) // self.segment_interval
        first = earliest // self.segment_interval
        segments = [number for number in self._database.segments if first <= number <= last]
        scans = [
            self._database.scan(number, start, end, reverse=reverse)
            for number in (reversed(segments) if reverse else segments)
        ]
        one_key = from_key is not None and from_key == to_key
        # Of one key an older segment holds what comes first; of several keys each segment has a part.
        pairs = chain.from_iterable(scans) if one_key else heapq.merge(*scans, key=itemgetter(0), reverse=reverse)
        return self._shown(pairs, from_key, to_key, earliest, latest)

    def write(self, updates: Updates, offset: int | None) -> None:
        times = [self._time(key) for key in updates.keys]
        stream_time = max(times, default=self._stream_time)
        stream_time = max(stream_time, self._stream_time)
        first_live = self._first_live(stream_time)
        changes: defaultdict[int, list[Change]] = defaultdict(list)
        values = updates.stored() if self._stamped else updates.values
        for key, value, time in zip(updates.keys, values, times, strict=True):
            segment = time // self.segment_interval
            if segment >= first_live:
                changes[segment].append((key, value))
            else:
                self.expired_records += 1
        latest = max(self._latest, max(updates.timestamps, default=NO_TIME))
        self._database.write(changes, stream_time, latest, offset)
        self._stream_time, self._latest = stream_time, latest
        if any(segment < first_live for segment in self._database.segments):
            self._database.drop_before(first_live)

    def ingest(self, files: Sequence[Path], offset: int) -> None:  # noqa: ARG002
        """Refused: SST files of a changelog know nothing of segments. Whoever restores looks at `takes_files`."""
        raise NotSupportedException(
            f"store {self.name} keeps its records in segments and takes no SST files; restore it record by record"
        )

    def approximate_num_entries(self) -> int:
        return self._database.approximate_num_entries()

    def is_empty(self) -> bool:
        return self._database.is_empty()

    @property
    def _layout(self) -> str:
        return f"{self._kind}, segments of {self.segment_interval} ms"

    def _open(self) -> None:
        layout = self._layout
        self._database = SegmentedDatabase(self.folder, layout, self._measured, self.options)
        found = self._database.layout()
        if found != layout:
            _LOGGER.warning(
                "Store %s holds %s, and is %s now: its kind or its retention was changed. It is wiped and restored from"
                " its changelog",
                self.folder,
                found or "a key-value store",
                layout,
            )
            self.wipe()
            return
        self._stream_time, self._latest = self._database.stream_time(), self._database.latest_timestamp()
        self._database.drop_before(self._first_live(self._stream_time))

    def _value(self, stored: bytes) -> bytes:
        return unstamp(stored)[1] if self._stamped else stored

    def _time(self, key: bytes) -> int:
        if len(key) < self._keys.suffix_bytes:
            raise ProcessorStateException(
                f"a record of changelog {self.changelog} has a key of {len(key)} bytes, where a key of store"
                f" {self.name} ends with {self._keys.suffix_bytes} bytes of times. The topic was written by a store of"
                " another kind: give the store another name, or reset the application"
            )
        return self._keys.segment_time(key)

    def _first_live(self, stream_time: int) -> int:
        return max((stream_time - self.retention) // self.segment_interval, 0)

    def _earliest_shown(self) -> int:
        stream_time = self._stream_time
        return 0 if stream_time == NO_TIME else max(stream_time - self.retention + 1, 0)

    def _bounds(
        self, from_key: bytes | None, to_key: bytes | None, earliest: int, latest: int
    ) -> tuple[bytes | None, bytes | None]:
        """Changelog keys that all records that are looked for lie between; others may lie there too."""
        keys = self._keys
        if from_key is not None and from_key == to_key:
            return from_key + keys.earliest_suffix(earliest), from_key + keys.latest_suffix(latest)
        end = None if to_key is None else largest_with_suffix(to_key, keys.latest_suffix(latest))
        return from_key, end

    def _shown(
        self, pairs: Iterator[Pair], from_key: bytes | None, to_key: bytes | None, earliest: int, latest: int
    ) -> Iterator[Pair]:
        suffix, is_between = self._keys.suffix_bytes, self._keys.is_between
        for data, stored in pairs:
            key = data[:-suffix]
            if (
                (from_key is None or from_key <= key)
                and (to_key is None or key <= to_key)
                and is_between(data, earliest, latest)
            ):
                yield data, self._value(stored)


class WindowStore(SegmentedStore):
    """Windows by key and start. Values lie there with their timestamps, and without in the changelog (KIP-258)."""

    _kind = "windows"
    _keys = WINDOW_KEYS
    _stamped = True


class SessionStore(SegmentedStore):
    """Sessions by key, end and start. Values lie there as in the changelog: a session's end is its timestamp."""

    _kind = "sessions"
    _keys = SESSION_KEYS
    _stamped = False


class JoinStore(SegmentedStore):
    """Records of one side of a join of streams by key, time and a number that tells equals apart.

    Values lie there as in the changelog.
    """

    _kind = "records to join"
    _keys = WINDOW_KEYS
    _stamped = False


class DedupeStore(SegmentedStore):
    """Ids by the time of the first record that had them. Values lie there as in the changelog."""

    _kind = "ids"
    _keys = WINDOW_KEYS
    _stamped = False
