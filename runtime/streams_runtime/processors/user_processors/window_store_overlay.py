"""A window store with what a batch has written over it, as it will be once the batch is committed."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from operator import itemgetter

from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import WINDOW_KEYS
from streams_runtime.state.window_store import WindowStore


class WindowStoreOverlay:
    """Keys are those of the changelog. What the batch writes lets the store's time come at once, and windows expire."""

    def __init__(self, store: WindowStore) -> None:
        self._store = store
        self._written: dict[bytes, tuple[bytes | None, int]] = {}
        self._stream_time = store.stream_time

    def read(self, key: bytes) -> bytes | None:
        """The value of a window; None: it has none, or has expired."""
        if WINDOW_KEYS.segment_time(key) < self._earliest:
            return None
        written = self._written.get(key)
        return self._store.get(key) if written is None else written[0]

    def write(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Set a window's value, or delete it; the changelog's record has this timestamp (ms)."""
        self._written[key] = value, timestamp
        self._stream_time = max(self._stream_time, WINDOW_KEYS.segment_time(key))

    def fetch(self, key: bytes | None, earliest: int, latest: int, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        """Windows of a key, or of all, that start between two times, both inclusive, as they are now.

        In the order of their keys' bytes, then of their starts.
        """
        earliest = max(earliest, self._earliest)
        over = {
            each: value
            for each, (value, _) in self._written.items()
            if WINDOW_KEYS.is_between(each, earliest, latest) and key in (None, each[: -WINDOW_KEYS.suffix_bytes])
        }
        found = self._store.fetch(key, key, earliest, latest, reverse=reverse)
        stored = (pair for pair in found if pair[0] not in over)
        both = merge(stored, sorted(over.items(), reverse=reverse), key=itemgetter(0), reverse=reverse)
        return ((each, value) for each, value in both if value is not None)

    def take_updates(self) -> Updates:
        """What was written, for the store; it begins anew over it."""
        written, self._written = self._written, {}
        return Updates([*written], [value for value, _ in written.values()], [time for _, time in written.values()])

    @property
    def _earliest(self) -> int:
        """The earliest start that is shown."""
        return max(self._stream_time - self._store.retention + 1, 0)
