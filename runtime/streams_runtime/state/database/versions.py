"""A database of a table's rows and of their history: the newest of each key, and what came before in segments of time.

The data's own family has each key's newest value, so that it is read as a table without a history is. A segment has
what is no longer the newest, by the time at which it was replaced: all that a segment has is out of reach at once, and
is dropped with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rocksdict import Rdict

from streams_runtime.state.database.open_database import Pair
from streams_runtime.state.database.rocksdb_adapter import RocksDB
from streams_runtime.state.database.segments import Change, SegmentFamilies


class VersionedDatabase(SegmentFamilies, RocksDB):
    """The newest pairs, as RocksDB has them, and others in segments."""

    def _data_families(self) -> Iterable[Rdict]:
        return [self._db, *(each.family for each in self._segments.values())]

    def get_in(self, segment: int, keys: Sequence[bytes]) -> list[bytes | None]:
        """Values of `keys` in one segment, in their order; None where there is none."""
        return self._get_in(segment, keys)

    def first_between(self, since: int, start: bytes, end: bytes) -> Pair | None:
        """The first pair with start <= key <= end of the oldest segment, from the one numbered `since` on, that has
        any.
        """
        for number in self.segments:
            if number >= since:
                found = self._chunk(lambda number=number: self._family(number), start, end, False, False, limit=1)  # type: ignore[misc]
                if found:
                    return found[0]
        return None

    def all_between(self, since: int, start: bytes, end: bytes) -> Iterator[Pair]:
        """All of them in all of these segments, the oldest segment's first."""
        for number in self.segments:
            if number >= since:
                yield from self._scan(lambda number=number: self._family(number), start, end, False)  # type: ignore[misc]

    def write_versions(
        self,
        newest: Sequence[Change],
        older: Mapping[int, Sequence[Change]],
        stream_time: int,
        offset: int | None,
    ) -> None:
        """Put (or, for None, delete) the newest pairs, and those of segments, and set the stream time and the offset,
        in one atomic write; `offset` None leaves the recorded one as it is.
        """
        self._write_all(older, newest, stream_time, stream_time, offset)

    def is_empty(self) -> bool:
        """Whether there is neither a key nor a history."""
        return super().is_empty() and not self.segments
