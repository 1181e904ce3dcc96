"""The store of a table with a history (VersionedKeyValueStore, KIP-889): what each key had, and from when to when.

A version of a key is valid from its own time until that of the next one; a deletion is a version without a value. Of
one time the last that is written counts. Stream time is the largest time that was written. What was replaced
`retention` ms or more before it is not answered any more, and a version that is older than that is not taken.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from streams_runtime.errors import NotSupportedException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.store_recorder import StoreRecorder
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions
from streams_runtime.state.database.segments import NO_TIME, Change
from streams_runtime.state.database.versions import VersionedDatabase
from streams_runtime.state.store import KeyValueStore, Updates, stamp, unstamp

_LOGGER = logging.getLogger("streams_runtime.state")
_LEAST_SEGMENT_INTERVAL = 60_000
_TIME_BYTES = 8
_LENGTH_BYTES = 4
_FIRST_TIME = 1 << 63  # added to times, so that those before 1970 come first in the order of bytes
_LAST = b"\xff" * _TIME_BYTES
_REPLACED, _DELETED = b"r", b"d"  # kinds of keys in a segment
_VALUE, _NO_VALUE = b"\x01", b"\x00"


@dataclass(frozen=True, slots=True)
class Version:
    """A value of a key, valid from `valid_from` until before `valid_to` (ms); None: it is the newest.

    `value` None: the key was deleted at `valid_from`.
    """

    value: bytes | None
    valid_from: int
    valid_to: int | None = None


class VersionedStore(KeyValueStore):
    """One partition of a table with a history. What every key-value store reads is the newest of each key.

    In a segment, by the time at which it was replaced, lies

    - `r`, the key's length (4) and bytes, the time (8) at which a version was replaced, with the time since when it
      was valid (8) and its value behind a byte, 1, or 0 for none;
    - `d` and a key's bytes, with the time (8): that the key was deleted then and has nothing newer.
    """

    takes_files = False
    keeps_versions = True
    _versions: VersionedDatabase
    _stream_time: int

    def __init__(
        self,
        name: str,
        changelog: TopicPartition,
        folder: Path,
        retention: int,
        measured: StoreRecorder | None = None,
        options: RocksDBOptions = DEFAULT_OPTIONS,
    ) -> None:
        """`retention` in ms. What was written with another one, or without, is thrown away and restored."""
        self.retention = retention
        self.segment_interval = max(retention // 3, _LEAST_SEGMENT_INTERVAL)
        super().__init__(name, changelog, folder, measured, options)

    @property
    def stream_time(self) -> int:
        """The largest time that was written (ms); -1 when there is none."""
        return self._stream_time

    @property
    def segments(self) -> tuple[int, ...]:
        """The numbers of the segments that there are: time // segment interval."""
        return self._versions.segments

    @property
    def format(self) -> str:
        return f"{self._layout}, version 1"

    def newest(self, keys: Sequence[bytes]) -> list[Version | None]:
        """The newest version of each key, in their order: of a key that was deleted within the retention that."""
        found = [None if each is None else _newest_of(each) for each in self.get_stored(keys)]
        absent = [row for row, each in enumerate(found) if each is None]
        for segment in reversed(self._versions.segments):
            if not absent:
                break
            marks = self._versions.get_in(segment, [_DELETED + keys[row] for row in absent])
            for row, mark in zip(absent, marks, strict=True):
                if mark is not None:
                    found[row] = Version(None, _time(mark))
            absent = [row for row in absent if found[row] is None]
        return found

    def replaced_at(self, key: bytes, time: int) -> Version | None:
        """The version that was valid at `time` (ms) of a key whose newest is younger; without a value: it was deleted.

        None: nothing was known of the key yet, or it lies too far back. One that the retention has passed may be found.
        """
        since = (time + 1) // self.segment_interval
        pair = self._versions.first_between(since, _replaced(key, time + 1), _replaced_last(key))
        version = None if pair is None else _version_of(*pair)
        return version if version is not None and version.valid_from <= time else None

    def as_of(self, key: bytes, time: int) -> Version | None:
        """The value that the key had at `time` (ms), and from when to when (VersionedKeyValueStore#get).

        None: it had none, or was replaced so long ago that the history does not reach back to `time`.
        """
        (version,) = self.newest([key])
        if version is not None and version.valid_from > time:
            version = self.replaced_at(key, time)
        if version is None or version.value is None:
            return None
        return version if version.valid_to is None or time >= self.reach(self._stream_time) else None

    def reach(self, stream_time: int) -> int:
        """The earliest time (ms) that the history reaches back to once stream time is this."""
        return stream_time - self.retention

    def write(self, updates: Updates, offset: int | None) -> None:
        """Put versions in the order in which they are given, several of one key too; the others are too old."""
        stream_time = self._stream_time
        taken: defaultdict[bytes, dict[int, bytes | None]] = defaultdict(dict)
        for key, value, time in zip(updates.keys, updates.values, updates.timestamps, strict=True):
            if time >= self.reach(stream_time):
                taken[key][time] = value
                stream_time = max(stream_time, time)
        newest: list[Change] = []
        older: defaultdict[int, list[Change]] = defaultdict(list)
        for (key, versions), before in zip(taken.items(), self.newest(list(taken)), strict=True):
            for segment, change in self._put(key, versions, before):
                (newest if segment is None else older[segment]).append(change)
        first_live = self._first_live(stream_time)
        self._versions.write_versions(
            newest,
            {segment: changes for segment, changes in older.items() if segment >= first_live},
            stream_time,
            offset,
        )
        self._stream_time = stream_time
        if any(segment < first_live for segment in self.segments):
            self._versions.drop_before(first_live)

    def ingest(self, files: Sequence[Path], offset: int) -> None:  # noqa: ARG002
        """Refused: SST files of a changelog have no versions. Whoever restores looks at `takes_files`."""
        raise NotSupportedException(
            f"store {self.name} keeps a history and takes no SST files; restore it record by record"
        )

    @property
    def _layout(self) -> str:
        return f"key-value with a history of {self.retention} ms"

    def _open(self) -> None:
        layout = self._layout
        self._database = self._versions = VersionedDatabase(self.folder, layout, self._measured, self.options)
        found = self._versions.layout()
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
        self._stream_time = self._versions.stream_time()
        self._versions.drop_before(self._first_live(self._stream_time))

    def _put(
        self, key: bytes, versions: dict[int, bytes | None], before: Version | None
    ) -> Iterator[tuple[int | None, Change]]:
        """What changes of a key that gets versions, by their times: the segment of each change, None for the newest."""
        chain = dict(self._concerned(key, versions, before)) | versions
        times = sorted(chain)
        for time, until in pairwise(times):
            if time in versions or until in versions:
                yield until // self.segment_interval, (_replaced(key, until), _packed(time, chain[time]))
        last = times[-1]
        if last not in versions:
            return
        value = chain[last]
        if before is not None and before.value is None and (value is not None or before.valid_from != last):
            yield before.valid_from // self.segment_interval, (_DELETED + key, None)
        if value is not None:
            yield None, (key, stamp(last, value))
            return
        yield None, (key, None)
        yield last // self.segment_interval, (_DELETED + key, _bytes_of(last))

    def _concerned(
        self, key: bytes, versions: Iterable[int], newest: Version | None
    ) -> Iterator[tuple[int, bytes | None]]:
        """What the store has of a key that gets versions at these times: from what is valid at the first of them to
        what follows on the last one that comes late; and the newest.
        """
        if newest is None:
            return
        late = [time for time in versions if time <= newest.valid_from]
        first, last = min(late, default=newest.valid_from), max(late, default=newest.valid_from)
        if first < newest.valid_from:
            since = (first + 1) // self.segment_interval
            for pair in self._versions.all_between(since, _replaced(key, first + 1), _replaced_last(key)):
                version = _version_of(*pair)
                yield version.valid_from, version.value
                if version.valid_from > last:
                    break
        yield newest.valid_from, newest.value

    def _first_live(self, stream_time: int) -> int:
        """The first segment in which anything is that the history reaches back to."""
        return 0 if stream_time == NO_TIME else self.reach(stream_time) // self.segment_interval


def _newest_of(stored: bytes) -> Version:
    time, value = unstamp(stored)
    return Version(value, time)


def _bytes_of(time: int) -> bytes:
    return (time + _FIRST_TIME).to_bytes(_TIME_BYTES, "big")


def _time(data: bytes) -> int:
    return int.from_bytes(data, "big") - _FIRST_TIME


def _prefix(key: bytes) -> bytes:
    return _REPLACED + len(key).to_bytes(_LENGTH_BYTES, "big") + key


def _replaced(key: bytes, time: int) -> bytes:
    return _prefix(key) + _bytes_of(time)


def _replaced_last(key: bytes) -> bytes:
    return _prefix(key) + _LAST


def _packed(time: int, value: bytes | None) -> bytes:
    return _bytes_of(time) + (_NO_VALUE if value is None else _VALUE + value)


def _version_of(key: bytes, data: bytes) -> Version:
    value = data[_TIME_BYTES + 1 :] if data[_TIME_BYTES : _TIME_BYTES + 1] == _VALUE else None
    return Version(value, _time(data[:_TIME_BYTES]), _time(key[-_TIME_BYTES:]))
