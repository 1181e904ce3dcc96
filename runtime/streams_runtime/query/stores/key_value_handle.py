"""Handles over the local partitions of a store, as KafkaStreams#store gives them (KIP-216)."""

from __future__ import annotations

from dataclasses import dataclass, field

from streams_runtime.query.stores.composite import CompositeSegments, CompositeStore
from streams_runtime.query.stores.iterators import KeyValue, KeyValueIterator, VersionedRecord, WindowStoreIterator
from streams_runtime.query.stores.merged_entries import MergedEntries
from streams_runtime.query.stores.position_bound import PositionBound
from streams_runtime.query.stores.session_handle import ReadOnlySessionStore
from streams_runtime.query.stores.store_target import target_of
from streams_runtime.query.stores.views import Queryable, StoreCodec, StoredVersion, StoreType
from streams_runtime.query.stores.window_handle import ReadOnlyWindowStore
from streams_runtime.query.wire.windowed_keys import Moment, Window, Windowed, last_ms, moment

__all__ = [
    "KeyValue",
    "KeyValueIterator",
    "ReadOnlyKeyValueStore",
    "ReadOnlySessionStore",
    "ReadOnlyStore",
    "ReadOnlyWindowStore",
    "StoreQueryParameters",
    "VersionedRecord",
    "Window",
    "WindowStoreIterator",
    "Windowed",
    "open_store",
]


@dataclass(frozen=True, slots=True)
class StoreQueryParameters:
    """Which store to open, and how (StoreQueryParameters, KIP-562).

    `type` is a StoreType or its value. `partition` narrows the handle to one partition; None: every local one. A
    `stale` handle also reads standbys and stores that are being restored, and reads while the client is REBALANCING:
    its answers may lie behind what is committed. `position`: by partition of the store's inputs the offset of a record
    that answers have to contain, with those before it (PositionBound, KIP-796).
    """

    name: str
    type: str = StoreType.KEY_VALUE
    partition: int | None = None
    stale: bool = False
    position: PositionBound = field(default_factory=dict)


class ReadOnlyKeyValueStore:
    """Reads the local partitions of a key-value store (ReadOnlyKeyValueStore); StreamsClient.store gives one.

    Keys have the types of the store's key format. Order is that of the keys' bytes: negative numbers come after
    positive ones. Usable from several threads.

    Every method may raise these:
        StreamsRebalancingException, NotUpToBoundException: retry with this handle.
        StateStoreMigratedException: look the store up again.
        StateStoreNotAvailableException: the client is ending or has ended; ask another instance.
        InvalidStateStorePartitionException: ask the instance that has the partition.
        ValueError: a key is not of the store's key format.
    """

    def __init__(self, store: CompositeStore, codec: StoreCodec) -> None:
        self._store = store
        self._codec = codec

    def get(self, key: object, as_of: Moment | None = None) -> object:
        """Return the key's value, or None where the store has no such key (#get).

        With `as_of`, of a table with a history, the VersionedRecord that was valid then, or None
        (VersionedKeyValueStore#get, KIP-889); StoreTypeMismatch where the table has none. Raises as every method does.
        """
        data = self._codec.key.encode(key)
        if as_of is not None:
            return versioned_record(self._codec, self._store.as_of(data, last_ms("as_of", as_of)))
        value = self._store.get(data)
        return None if value is None else self._codec.decode_value(value)

    def range(self, from_key: object | None, to_key: object | None) -> KeyValueIterator:
        """Return the records from `from_key` to `to_key`, both inclusive, None an open end (#range).

        Ends in the wrong order give no records. Raises as every method does.
        """
        return self._scan(from_key, to_key, reverse=False)

    def reverse_range(self, from_key: object | None, to_key: object | None) -> KeyValueIterator:
        """Return the records of `range`, last key first (#reverseRange). Raises as every method does."""
        return self._scan(from_key, to_key, reverse=True)

    def all(self) -> KeyValueIterator:
        """Return every record, first key first (#all). Raises as every method does."""
        return self._scan(None, None, reverse=False)

    def reverse_all(self) -> KeyValueIterator:
        """Return every record, last key first (#reverseAll). Raises as every method does."""
        return self._scan(None, None, reverse=True)

    def prefix_scan(self, prefix: object) -> KeyValueIterator:
        """Return the records whose keys' bytes begin with those of `prefix` (#prefixScan, KIP-614).

        Raises as every method does.
        """
        return self._iterator(self._store.prefix_scan(self._codec.key.encode(prefix)))

    def approximate_num_entries(self) -> int:
        """Estimate the number of records, at little cost (#approximateNumEntries). Raises as every method does."""
        return self._store.approximate_num_entries()

    def _scan(self, from_key: object | None, to_key: object | None, reverse: bool) -> KeyValueIterator:
        encode = self._codec.key.encode
        start = None if from_key is None else encode(from_key)
        end = None if to_key is None else encode(to_key)
        return self._iterator(self._store.scan(start, end, reverse))

    def _iterator(self, entries: MergedEntries) -> KeyValueIterator:
        return KeyValueIterator(entries, self._codec.key.decode, self._codec.decode_value)


def versioned_record(codec: StoreCodec, version: StoredVersion | None) -> VersionedRecord | None:
    """What lies in a store, as users see it."""
    if version is None:
        return None
    until = None if version.valid_to is None else moment(version.valid_to)
    return VersionedRecord(codec.decode_value(version.value), moment(version.valid_from), until)


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
        NotUpToBoundException: a partition does not contain `position` yet; retry.
        InvalidQueryException: `position` has a topic that the store is not made of, or is beside `stale`.
    """
    only = None if parameters.partition is None else (parameters.partition,)
    target = target_of(queryable, parameters.name, parameters.type, only, parameters.stale, parameters.position)
    if parameters.type == StoreType.WINDOW:
        return ReadOnlyWindowStore(CompositeSegments(target), target.codec)
    if parameters.type == StoreType.SESSION:
        return ReadOnlySessionStore(CompositeSegments(target), target.codec)
    return ReadOnlyKeyValueStore(CompositeStore(target), target.codec)
