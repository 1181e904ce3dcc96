"""Handles over the local partitions of a store, as KafkaStreams#store gives them (KIP-216)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from streams_runtime.errors import StoreTypeMismatch, UnknownStateStoreException
from streams_runtime.query.composite import CompositeSegments, CompositeStore, MergedEntries
from streams_runtime.query.iterators import KeyValue, KeyValueIterator, WindowStoreIterator
from streams_runtime.query.sessions import ReadOnlySessionStore
from streams_runtime.query.verdicts import Found, Situation, check
from streams_runtime.query.views import Queryable, StoreCodec, StoreType
from streams_runtime.query.windowed import Window, Windowed
from streams_runtime.query.windows import ReadOnlyWindowStore
from streams_runtime.states import ClientState

__all__ = [
    "KeyValue",
    "KeyValueIterator",
    "ReadOnlyKeyValueStore",
    "ReadOnlySessionStore",
    "ReadOnlyStore",
    "ReadOnlyWindowStore",
    "StoreQueryParameters",
    "Window",
    "WindowStoreIterator",
    "Windowed",
    "check_name",
    "check_store",
    "open_composite",
    "open_segments",
    "open_store",
]


@dataclass(frozen=True, slots=True)
class StoreQueryParameters:
    """Which store is asked for.

    `type` is a StoreType or its value. `partition` narrows the handle to one partition; None: every local
    one. `stale`: the handle reads standbys too, and stores that are being restored, also while the client is
    REBALANCING; what it answers may lie behind what is committed.
    """

    name: str
    type: str = StoreType.KEY_VALUE
    partition: int | None = None
    stale: bool = False


class ReadOnlyKeyValueStore:
    """Reads the local partitions of a key-value store.

    Every method may raise StreamsRebalancingException (retry with this handle), StateStoreMigratedException
    (look the store up again), StateStoreNotAvailableException (do not retry here) and
    InvalidStateStorePartitionException (ask the instance that has it); and a ValueError for a key that is
    not of the store's key format. Usable from several threads. Order is that of the keys' bytes: negative
    numbers come after positive ones.
    """

    def __init__(self, store: CompositeStore, codec: StoreCodec) -> None:
        self._store = store
        self._codec = codec

    def get(self, key: object) -> object:
        """The key's value, or None where the store has no such key."""
        value = self._store.get(self._codec.key.encode(key))
        return None if value is None else self._codec.decode_value(value)

    def range(self, from_key: object | None, to_key: object | None) -> KeyValueIterator:
        """Records from `from_key` to `to_key`, both inclusive, None an open end; reversed ends give none."""
        return self._scan(from_key, to_key, reverse=False)

    def reverse_range(self, from_key: object | None, to_key: object | None) -> KeyValueIterator:
        """The records of `range`, last key first."""
        return self._scan(from_key, to_key, reverse=True)

    def all(self) -> KeyValueIterator:
        """Every record."""
        return self._scan(None, None, reverse=False)

    def reverse_all(self) -> KeyValueIterator:
        """Every record, last key first."""
        return self._scan(None, None, reverse=True)

    def prefix_scan(self, prefix: object) -> KeyValueIterator:
        """Records whose key's bytes begin with the bytes of `prefix`."""
        return self._iterator(self._store.prefix_scan(self._codec.key.encode(prefix)))

    def approximate_num_entries(self) -> int:
        """About how many records there are; cheap."""
        return self._store.approximate_num_entries()

    def _scan(self, from_key: object | None, to_key: object | None, reverse: bool) -> KeyValueIterator:
        encode = self._codec.key.encode
        start = None if from_key is None else encode(from_key)
        end = None if to_key is None else encode(to_key)
        return self._iterator(self._store.scan(start, end, reverse))

    def _iterator(self, entries: MergedEntries) -> KeyValueIterator:
        return KeyValueIterator(entries, self._codec.key.decode, self._codec.decode_value)


ReadOnlyStore = ReadOnlyKeyValueStore | ReadOnlyWindowStore | ReadOnlySessionStore


def open_store(queryable: Queryable, parameters: StoreQueryParameters) -> ReadOnlyStore:
    """A handle over the store's local partitions, of the type that was asked for; what StreamsClient.store gives.

    Raises:
        StreamsNotStartedException: the client is CREATED; retry once it is RUNNING.
        StreamsRebalancingException: it is REBALANCING, or a partition is still being restored; retry.
        StateStoreMigratedException: the store was closed while it was looked up; look it up again.
        StateStoreNotAvailableException: the client is closing, closed or in ERROR; do not retry here.
        UnknownStateStoreException: the topology has no such store; fix the name.
        InvalidStateStorePartitionException: the partition, or every one, is elsewhere; ask that instance.
        StoreTypeMismatch: the store is of another type; ask for that one.
    """
    name, stale = parameters.name, parameters.stale
    only = None if parameters.partition is None else (parameters.partition,)
    if parameters.type == StoreType.WINDOW:
        windows = open_segments(queryable, name, StoreType.WINDOW, only, stale)
        return ReadOnlyWindowStore(windows, queryable.codec(name))
    if parameters.type == StoreType.SESSION:
        sessions = open_segments(queryable, name, StoreType.SESSION, only, stale)
        return ReadOnlySessionStore(sessions, queryable.codec(name))
    store = open_composite(queryable, name, parameters.type, only, stale)
    return ReadOnlyKeyValueStore(store, queryable.codec(name))


def open_composite(
    queryable: Queryable,
    name: str,
    wanted_type: str = StoreType.KEY_VALUE,
    only: Collection[int] | None = None,
    stale: bool = False,
) -> CompositeStore:
    """A key-value store's local partitions as bytes: all, or exactly those of `only`. Raises as `open_store` does."""
    check_store(queryable, name, wanted_type)
    return CompositeStore(queryable, name, only, stale)


def open_segments(
    queryable: Queryable,
    name: str,
    wanted_type: str,
    only: Collection[int] | None = None,
    stale: bool = False,
) -> CompositeSegments:
    """A window or session store's local partitions as bytes. Raises as `open_store` does."""
    check_store(queryable, name, wanted_type)
    return CompositeSegments(queryable, name, only, stale)


def check_store(queryable: Queryable, name: str, wanted_type: str = StoreType.KEY_VALUE) -> None:
    """Raise as `open_store` does, unless the store is there and the client can be asked for it.

    The client's state is looked at before the name, as Kafka Streams does: a client that has not started, or
    that is closing, says so whatever it is asked.
    """
    state = queryable.state
    if state is not ClientState.REBALANCING:
        check(state, Found(name, Situation.OPEN, (), 0, queryable.url))
    check_name(queryable, name)
    store_type = queryable.store_type(name)
    if store_type != wanted_type:
        raise StoreTypeMismatch(
            f"store {name!r} has type {str(store_type)!r}, not {str(wanted_type)!r}; ask for the former"
        )


def check_name(queryable: Queryable, name: str) -> None:
    """Raise UnknownStateStoreException unless the topology has a store of this name."""
    names = queryable.store_names()
    if name not in names:
        known = ", ".join(sorted(names)) or "none"
        raise UnknownStateStoreException(f"the topology has no store {name!r}, only: {known}; fix the name")
