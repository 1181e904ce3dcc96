"""A store with what a batch has written over it: bytes, in the order of the keys."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from operator import itemgetter

from streams_runtime.state.store import KeyValueStore, Updates


class StoreOverlay:
    """What the batch writes lies in memory over the store until the batch is committed; every read sees it."""

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store
        self._written: dict[bytes, tuple[bytes | None, int]] = {}

    def read(self, key: bytes) -> bytes | None:
        """The value of a key, if it has one."""
        written = self._written.get(key)
        return self._store.get(key) if written is None else written[0]

    def write(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Set a key's value, or delete it; the changelog's record has this timestamp (ms)."""
        self._written[key] = value, timestamp

    def pairs(
        self, first: bytes | None, last: bytes | None, prefix: bytes | None, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """The pairs with first <= key <= last as they are now: the store does not change before the batch ends.

        What is written is copied.
        """
        if first is not None and last is not None and first > last:
            return iter(())
        over = {
            key: value
            for key, (value, _) in self._written.items()
            if (first is None or key >= first)
            and (last is None or key <= last)
            and (prefix is None or key.startswith(prefix))
        }
        stored = (pair for pair in self._stored(first, last, prefix, reverse) if pair[0] not in over)
        written = sorted(over.items(), reverse=reverse)
        both = merge(stored, written, key=itemgetter(0), reverse=reverse)
        return ((key, value) for key, value in both if value is not None)

    def take_updates(self) -> Updates:
        """What was written, for the store; it begins anew over it."""
        written, self._written = self._written, {}
        return Updates([*written], [value for value, _ in written.values()], [time for _, time in written.values()])

    def _stored(
        self, first: bytes | None, last: bytes | None, prefix: bytes | None, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._store.scan(first, last, reverse=reverse):
            if prefix is not None and not key.startswith(prefix):
                return
            yield key, value
