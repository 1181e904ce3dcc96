"""The local partitions of a store as one: a key finds its partition, scans are merged in key order."""

from __future__ import annotations

from streams_runtime.query.stores.judged_partitions import LocalPartitions
from streams_runtime.query.stores.merged_entries import MergedEntries
from streams_runtime.query.stores.views import SegmentedView, StoredVersion, StoreView


class CompositeStore(LocalPartitions[StoreView]):
    """Reads bytes from the local partitions of a key-value store. Keys are ordered by their bytes."""

    def get(self, key: bytes) -> bytes | None:
        """The value's bytes, or None where the store has no such key."""
        view = self._readable_for(key)
        return self._reading((view,), lambda: view.get(key))

    def as_of(self, key: bytes, time: int) -> StoredVersion | None:
        """What the key had at `time` (ms), or None. Raises StoreTypeMismatch: the store keeps no history."""
        view = self._readable_for(key)
        return self._reading((view,), lambda: view.as_of(key, time))

    def scan(self, start: bytes | None, end: bytes | None, reverse: bool = False) -> MergedEntries:
        """Entries from `start` to `end`, both inclusive, None an open end."""
        return self._merged(self._readable(), lambda view: view.scan(start, end, reverse=reverse), reverse)

    def prefix_scan(self, prefix: bytes) -> MergedEntries:
        """Entries whose key begins with `prefix`."""
        return self._merged(self._readable(), lambda view: view.prefix_scan(prefix), reverse=False)

    def approximate_num_entries(self) -> int:
        """The partitions' own estimates, added."""
        views = self._readable()
        return self._reading(views, lambda: sum(view.approximate_num_entries() for view in views))


class CompositeSegments(LocalPartitions[SegmentedView]):
    """Reads bytes from the local partitions of a window or session store; a record's key decides where it is.

    Entries have the changelog's keys (state.window_keys), and are in the order of their bytes: by the record's key,
    each key's by time.
    """

    def get(self, key: bytes, changelog_key: bytes) -> bytes | None:
        """The value's bytes of one window or session of `key`, or None where there is none, or no more."""
        view = self._readable_for(key)
        return self._reading((view,), lambda: view.get(changelog_key))

    def check(self, key: bytes) -> None:
        """Raise as `get` does, reading nothing: what no store can hold is absent only where the partition is."""
        self._readable_for(key)

    def fetch_key(self, key: bytes, earliest: int, latest: int, reverse: bool = False) -> MergedEntries:
        """Entries of one key between two times (SegmentedView.fetch); asks its partition alone."""
        view = self._readable_for(key)
        return self._merged((view,), lambda view: view.fetch(key, key, earliest, latest, reverse=reverse), reverse)

    def fetch(
        self, from_key: bytes | None, to_key: bytes | None, earliest: int, latest: int, reverse: bool = False
    ) -> MergedEntries:
        """Entries between two keys and two times (SegmentedView.fetch)."""
        views = self._readable()
        return self._merged(
            views, lambda view: view.fetch(from_key, to_key, earliest, latest, reverse=reverse), reverse
        )
