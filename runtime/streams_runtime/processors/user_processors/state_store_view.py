"""A processor's own view of one partition of a declared key-value store: typed, and with what the batch has written.

What a processor puts goes nowhere before the batch is committed; until then it lies over the store, in memory, and
every read sees it. So a read gives the same wherever batches end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from operator import itemgetter
from typing import Any

from streams_runtime.errors import ProcessorStateException
from streams_runtime.processors.user_processors.declared_types import ValueCodec
from streams_runtime.state.serdes import Serde, SerdeException
from streams_runtime.state.store import KeyValueStore, Updates

_PREFIXED = ("string", "bytes")


class StateStoreView:
    """org.apache.kafka.streams.state.KeyValueStore. Keys and values are of the declared types, values mappings.

    What is given is new each time: changing it changes nothing in the store until it is put. An iterator shows the
    store as it was when it was asked for, until the call in which that was has returned. Keys have the order of their
    bytes, in which a negative number comes behind the positive ones (as in Kafka Streams).
    """

    def __init__(self, name: str, key_format: str, keys: Serde, values: ValueCodec, store: KeyValueStore) -> None:
        self.name = name
        self._key_format, self._keys, self._values, self._store = key_format, keys, values, store
        self._written: dict[bytes, tuple[bytes | None, int]] = {}
        self._time = 0
        self._calls = 0

    def get(self, key: Any) -> Any:
        """The value of a key; None where it has none. Raises TypeError: the key is not of the declared type."""
        return self._value(self._read(self._bytes(key)))

    def put(self, key: Any, value: Mapping[str, Any] | None) -> None:
        """Set a key's value; None deletes it.

        Raises TypeError or ValueError: key or value is not of the declared type.
        """
        self._written[self._bytes(key)] = (None if value is None else self._encoded(value), self._time)

    def put_if_absent(self, key: Any, value: Mapping[str, Any] | None) -> Any:
        """Set the value of a key that has none; the value that was there before. Raises as `put`."""
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def delete(self, key: Any) -> Any:
        """Delete a key; the value that it had, if it had one. Raises as `get`."""
        before = self.get(key)
        self._written[self._bytes(key)] = (None, self._time)
        return before

    def range(self, start: Any, end: Any, *, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Keys and values with start <= key <= end; None leaves that side open. Raises as `get`, at once."""
        first, last = (None if each is None else self._bytes(each) for each in (start, end))
        return self._pairs(first, last, None, reverse)

    def all(self, *, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """All keys and values."""
        return self._pairs(None, None, None, reverse)

    def prefix_scan(self, prefix: Any) -> Iterator[tuple[Any, Any]]:
        """Keys that begin with `prefix`, and their values (KIP-614).

        Raises TypeError: keys of this type have no prefix, or the prefix is of another type.
        """
        if self._key_format not in _PREFIXED:
            raise TypeError(f"keys of the store {self.name!r} are no texts and no bytes; use range")
        begin = self._bytes(prefix)
        return self._pairs(begin, None, begin, reverse=False)

    def at(self, timestamp: int) -> None:
        """A call of the user's comes next. What it writes has this timestamp in the changelog (ms).

        Iterators of the call before end: the batch may have, and the store may be another one.
        """
        self._time = timestamp
        self._calls += 1

    def take_updates(self) -> Updates:
        """What was written, for the store; the view begins anew over it."""
        written, self._written = self._written, {}
        return Updates([*written], [value for value, _ in written.values()], [time for _, time in written.values()])

    def _read(self, key: bytes) -> bytes | None:
        written = self._written.get(key)
        return self._store.get(key) if written is None else written[0]

    def _pairs(
        self, first: bytes | None, last: bytes | None, prefix: bytes | None, reverse: bool
    ) -> Iterator[tuple[Any, Any]]:
        """The pairs as they are now: the store does not change before the batch ends, and the rest is copied."""
        if first is not None and last is not None and first > last:
            return iter(())
        over = {
            key: value
            for key, (value, _) in self._written.items()
            if (first is None or key >= first)
            and (last is None or key <= last)
            and (prefix is None or key.startswith(prefix))
        }
        return self._merged(first, last, prefix, over, reverse, self._calls)

    def _merged(
        self,
        first: bytes | None,
        last: bytes | None,
        prefix: bytes | None,
        over: Mapping[bytes, bytes | None],
        reverse: bool,
        call: int,
    ) -> Iterator[tuple[Any, Any]]:
        stored = (pair for pair in self._scan(first, last, prefix, reverse) if pair[0] not in over)
        pairs = merge(stored, sorted(over.items(), reverse=reverse), key=itemgetter(0), reverse=reverse)
        while True:
            if self._calls != call:
                raise RuntimeError(
                    f"an iterator of the store {self.name!r} is for the call of process, or of a punctuator, that asked"
                    " for it; ask for another one"
                )
            if (pair := next(pairs, None)) is None:
                return
            key, value = pair
            if value is not None:
                yield self._keys.decode(key), self._value(value)

    def _scan(
        self, first: bytes | None, last: bytes | None, prefix: bytes | None, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._store.scan(first, last, reverse=reverse):
            if prefix is not None and not key.startswith(prefix):
                return
            yield key, value

    def _bytes(self, key: Any) -> bytes:
        if key is None:
            raise TypeError(f"the store {self.name!r} has no key None")
        try:
            return self._keys.encode(key)
        except SerdeException as error:
            raise TypeError(f"a key of the store {self.name!r}: {error}") from None

    def _encoded(self, value: Mapping[str, Any]) -> bytes:
        try:
            return self._values.encode(value)
        except (ValueError, TypeError, OverflowError) as error:  # those of Arrow are among them
            raise ValueError(
                f"a value of the store {self.name!r} is not of its declared type: {_line(error)}"
            ) from None

    def _value(self, data: bytes | None) -> Any:
        if data is None:
            return None
        try:
            return self._values.decode(data)
        except (ValueError, TypeError) as error:
            raise ProcessorStateException(
                f"store {self.name} has a value that is not of its declared type: {_line(error)}. It was written under"
                " another type: declare that, or give the store another name"
            ) from error


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
