"""A processor's own view of one partition of a declared key-value store: typed, and with what the batch has written.

What a processor puts goes nowhere before the batch is committed; until then it lies over the store, in memory, and
every read sees it. So a read gives the same wherever batches end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streams_runtime.processors.user_processors.processor_call import CurrentCall
from streams_runtime.processors.user_processors.stores.store_overlay import StoreOverlay
from streams_runtime.processors.user_processors.stores.stored_forms import StoredForms

_PREFIXED = ("string", "bytes")


class StateStoreView:
    """org.apache.kafka.streams.state.KeyValueStore. Keys and values are of the declared types, values mappings.

    What is given is new each time: changing it changes nothing in the store until it is put. An iterator shows the
    store as it was when it was asked for, until the call in which that was has returned. Keys have the order of their
    bytes, in which a negative number comes behind the positive ones (as in Kafka Streams).
    """

    def __init__(self, name: str, forms: StoredForms, store: StoreOverlay, current: CurrentCall) -> None:
        """What a call writes has its time in the changelog."""
        self.name = name
        self._forms, self._store, self._current = forms, store, current

    def get(self, key: Any) -> Any:
        """The value of a key; None where it has none. Raises TypeError: the key is not of the declared type."""
        return self._forms.value(self._store.read(self._forms.key_bytes(key)))

    def put(self, key: Any, value: Mapping[str, Any] | None) -> None:
        """Set a key's value; None deletes it.

        Raises TypeError or ValueError: key or value is not of the declared type.
        """
        self._write(key, None if value is None else self._forms.value_bytes(value))

    def put_if_absent(self, key: Any, value: Mapping[str, Any] | None) -> Any:
        """Set the value of a key that has none; the value that was there before. Raises as `put`."""
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def delete(self, key: Any) -> Any:
        """Delete a key; the value that it had, if it had one. Raises as `get`."""
        before = self.get(key)
        self._write(key, None)
        return before

    def range(self, start: Any, end: Any, *, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Keys and values with start <= key <= end; None leaves that side open. Raises as `get`, at once."""
        first, last = (None if each is None else self._forms.key_bytes(each) for each in (start, end))
        return self._pairs(first, last, None, reverse)

    def all(self, *, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """All keys and values."""
        return self._pairs(None, None, None, reverse)

    def prefix_scan(self, prefix: Any) -> Iterator[tuple[Any, Any]]:
        """Keys that begin with `prefix`, and their values (KIP-614).

        Raises TypeError: keys of this type have no prefix, or the prefix is of another type.
        """
        if self._forms.key_format not in _PREFIXED:
            raise TypeError(f"keys of the store {self.name!r} are no texts and no bytes; use range")
        begin = self._forms.key_bytes(prefix)
        return self._pairs(begin, None, begin, reverse=False)

    def _write(self, key: Any, value: bytes | None) -> None:
        self._store.write(self._forms.key_bytes(key), value, self._current.now.time)

    def _pairs(
        self, first: bytes | None, last: bytes | None, prefix: bytes | None, reverse: bool
    ) -> Iterator[tuple[Any, Any]]:
        pairs = self._forms.during(self._current, self._store.pairs(first, last, prefix, reverse))
        return ((self._forms.key(key), self._forms.value(value)) for key, value in pairs)
