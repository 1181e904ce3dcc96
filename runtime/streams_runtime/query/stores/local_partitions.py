"""The local partitions of stores, as queries read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from streams_runtime.errors import StoreTypeMismatch
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.stores.views import AnyView, Entry, StoredVersion, ViewClosed
from streams_runtime.state.database.open_database import StoreClosed
from streams_runtime.state.store import KeyValueStore, LocalStore
from streams_runtime.state.versioned_store import VersionedStore
from streams_runtime.state.window_store import SegmentedStore

S = TypeVar("S", bound=LocalStore)


def _always() -> bool:
    return True


def _unknown() -> Mapping[TopicPartition, int]:
    return {}


class _View(Generic[S]):
    """One open partition of a store. `is_active` and `position` are called each time: a task's may change."""

    def __init__(
        self,
        store: S,
        is_active: Callable[[], bool] = _always,
        position: Callable[[], Mapping[TopicPartition, int]] = _unknown,
    ) -> None:
        self._store = store
        self._is_active = is_active
        self._position = position

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self._store.partition

    @property
    def is_open(self) -> bool:
        """Whether it can be read."""
        return self._store.is_open

    @property
    def is_active(self) -> bool:
        """Whether its task has the partition and has restored it."""
        return self._is_active()

    @property
    def position(self) -> Mapping[TopicPartition, int]:
        """Of each input of its task the offset that comes next."""
        return self._position()

    def get(self, key: bytes) -> bytes | None:
        """The value's bytes, or None."""
        try:
            return self._store.get(key)
        except StoreClosed as closed:
            raise ViewClosed(self._where()) from closed

    def _where(self) -> str:
        return f"partition {self._store.partition} of store {self._store.name} is closed"


class LocalView(_View[KeyValueStore]):
    """One open partition of a key-value store (views.StoreView)."""

    def at_hand(self, key: bytes) -> tuple[bool, bytes | None]:
        """As views.StoreView has it."""
        try:
            return self._store.at_hand(key)
        except StoreClosed as closed:
            raise ViewClosed(self._where()) from closed

    def as_of(self, key: bytes, time: int) -> StoredVersion | None:
        """As views.StoreView has it."""
        store = self._store
        if not isinstance(store, VersionedStore):
            raise StoreTypeMismatch(
                f"store {store.name!r} keeps no history, only each key's last value; ask without a time, or declare its"
                " table with historyRetention"
            )
        try:
            version = store.as_of(key, time)
        except StoreClosed as closed:
            raise ViewClosed(self._where()) from closed
        if version is None or version.value is None:
            return None
        return StoredVersion(version.value, version.valid_from, version.valid_to)

    def scan(self, start: bytes | None, end: bytes | None, reverse: bool = False) -> LocalEntries:
        """Entries with start <= key <= end."""
        return LocalEntries(self._store.scan(start, end, reverse=reverse), self._where())

    def prefix_scan(self, prefix: bytes) -> LocalEntries:
        """Entries whose key begins with `prefix`."""
        return LocalEntries(_with_prefix(self._store, prefix), self._where())

    def approximate_num_entries(self) -> int:
        """RocksDB's estimate."""
        try:
            return self._store.approximate_num_entries()
        except StoreClosed as closed:
            raise ViewClosed(self._where()) from closed


class LocalSegments(_View[SegmentedStore]):
    """One open partition of a window or session store (views.SegmentedView)."""

    def fetch(
        self, from_key: bytes | None, to_key: bytes | None, earliest: int, latest: int, reverse: bool = False
    ) -> LocalEntries:
        """Entries between two keys of records and two times (ms)."""
        return LocalEntries(self._store.fetch(from_key, to_key, earliest, latest, reverse=reverse), self._where())


def view_of(
    store: LocalStore,
    is_active: Callable[[], bool] = _always,
    position: Callable[[], Mapping[TopicPartition, int]] = _unknown,
) -> AnyView:
    """The view of a store of any kind."""
    if isinstance(store, SegmentedStore):
        return LocalSegments(store, is_active, position)
    assert isinstance(store, KeyValueStore)
    return LocalView(store, is_active, position)


class LocalEntries:
    """Walks entries; the store is not held between two of them (views.EntryIterator)."""

    def __init__(self, pairs: Iterator[Entry], where: str) -> None:
        self._pairs: Iterator[Entry] | None = pairs
        self._where = where

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        if self._pairs is None:
            raise StopIteration
        try:
            return next(self._pairs)
        except StoreClosed as closed:
            raise ViewClosed(self._where) from closed

    def close(self) -> None:
        """Let go. May be called twice."""
        self._pairs = None


def _with_prefix(store: KeyValueStore, prefix: bytes) -> Iterator[Entry]:
    for key, value in store.scan(prefix, None):
        if not key.startswith(prefix):
            return
        yield key, value
