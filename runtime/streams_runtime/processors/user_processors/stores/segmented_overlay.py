"""A window or session store with what a batch has written over it, as it will be once the batch is committed."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import chain
from operator import itemgetter

from streams_runtime.state.store import Updates
from streams_runtime.state.window_store import SegmentedStore

_Written = dict[bytes, tuple[bytes | None, int]]


class SegmentedOverlay:
    """Keys are those of the changelog. What the batch writes lets the store's time come at once, and records expire."""

    def __init__(self, store: SegmentedStore) -> None:
        self._store, self._keys = store, store.keys
        # By the record's key: processors ask for what one key has, however many keys the batch has written.
        self._written: dict[bytes, _Written] = {}
        self._stream_time = store.stream_time

    def read(self, key: bytes) -> bytes | None:
        """The value of a window or session; None: it has none, or has expired."""
        if self._keys.segment_time(key) < self._earliest:
            return None
        written = self._written.get(self._record_key(key), {}).get(key)
        return self._store.get(key) if written is None else written[0]

    def write(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Set the value of a window or session, or delete it; the changelog's record has this timestamp (ms)."""
        self._written.setdefault(self._record_key(key), {})[key] = value, timestamp
        self._stream_time = max(self._stream_time, self._keys.segment_time(key))

    def fetch(
        self, from_key: bytes | None, to_key: bytes | None, earliest: int, latest: int, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """What records from one key to another have between two times, as it is now: SegmentedStore's fetch."""
        earliest = max(earliest, self._earliest)
        over = {
            key: value
            for key, (value, _) in self._between(from_key, to_key)
            if self._keys.is_between(key, earliest, latest)
        }
        found = self._store.fetch(from_key, to_key, earliest, latest, reverse=reverse)
        stored = (pair for pair in found if pair[0] not in over)
        both = merge(stored, sorted(over.items(), reverse=reverse), key=itemgetter(0), reverse=reverse)
        return ((key, value) for key, value in both if value is not None)

    def take_updates(self) -> Updates:
        """What was written, for the store; it begins anew over it."""
        written = dict(chain.from_iterable(each.items() for each in self._written.values()))
        self._written = {}
        return Updates([*written], [value for value, _ in written.values()], [time for _, time in written.values()])

    def _between(
        self, from_key: bytes | None, to_key: bytes | None
    ) -> Iterator[tuple[bytes, tuple[bytes | None, int]]]:
        if from_key is not None and from_key == to_key:
            return iter(self._written.get(from_key, {}).items())
        named = (
            each.items()
            for key, each in self._written.items()
            if (from_key is None or from_key <= key) and (to_key is None or key <= to_key)
        )
        return chain.from_iterable(named)

    def _record_key(self, key: bytes) -> bytes:
        return key[: -self._keys.suffix_bytes]

    @property
    def _earliest(self) -> int:
        """The earliest time that is shown."""
        return max(self._stream_time - self._store.retention + 1, 0)
