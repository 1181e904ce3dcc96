"""What handles give for more than one record: iterators in key order, to be closed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import NamedTuple

from streams_runtime.query.stores.merged_entries import MergedEntries


class KeyValue(NamedTuple):
    """One record of a store; of windows and sessions the key is a Windowed, of one key's windows their start."""

    key: object
    value: object


class VersionedRecord(NamedTuple):
    """What a key had for a while (Kafka Streams' VersionedRecord): from one time until before another, aware, in UTC.

    `valid_to` None: it is the newest.
    """

    value: object
    valid_from: datetime
    valid_to: datetime | None


class KeyValueIterator:
    """Records of a store in the order of their keys' bytes (Kafka Streams' KeyValueIterator).

    Usable in `for` and `with`; close it when done early. Every step raises StateStoreMigratedException,
    StateStoreNotAvailableException or StreamsRebalancingException as soon as the store has gone away, and
    IllegalStateException after `close`. After StreamsRebalancingException the same call may be tried again; otherwise
    look the store up again, or ask another instance.
    """

    def __init__(
        self,
        entries: MergedEntries,
        decode_key: Callable[[bytes], object],
        decode_value: Callable[[bytes], object],
    ) -> None:
        self._entries = entries
        self._decode_key = decode_key
        self._decode_value = decode_value

    def next(self) -> KeyValue:
        """Return the next record. Raises StopIteration at the end, and what every step raises."""
        key, value = next(self._entries)
        return KeyValue(self._decode_key(key), self._decode_value(value))

    def has_next(self) -> bool:
        """Return whether `next` would give a record. Raises what every step raises."""
        return self._entries.peek() is not None

    def peek_next_key(self) -> object:
        """Return the key that `next` would give, and stay.

        Raises StopIteration at the end, and what every step raises.
        """
        entry = self._entries.peek()
        if entry is None:
            raise StopIteration
        return self._decode_key(entry[0])

    def close(self) -> None:
        """Give the store's resources back. May be called twice and in every state, and raises nothing."""
        self._entries.close()

    def __iter__(self) -> KeyValueIterator:
        return self

    def __next__(self) -> KeyValue:
        return self.next()

    def __enter__(self) -> KeyValueIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class WindowStoreIterator(KeyValueIterator):
    """One key's windows in order of time; the key of each record is the window's start, a datetime in UTC."""
