"""A handle over the local partitions of a window store, as KafkaStreams#store gives them."""

from __future__ import annotations

from typing import overload

from streams_runtime.query.stores.composite import CompositeSegments
from streams_runtime.query.stores.iterators import KeyValueIterator, WindowStoreIterator
from streams_runtime.query.stores.views import StoreCodec
from streams_runtime.query.wire.windowed_keys import (
    Moment,
    Window,
    Windowed,
    first_ms,
    is_whole_ms,
    last_ms,
    moment,
    warn_of_ms,
)
from streams_runtime.state.window_keys import LATEST, split_window_key, window_key


class ReadOnlyWindowStore:
    """Reads the local partitions of a window store (ReadOnlyWindowStore); StreamsClient.store gives one.

    Times are aware datetimes and mean the windows' starts, both ends inclusive; ints of ms since 1970 are deprecated
    and warn. Keys of a range are inclusive, and None leaves that side open. Windows older than the store's retention,
    counted back from its newest, are gone. Records come in the order of the keys' bytes, each key's by time; the
    `backward_` methods give the same records in reverse. Usable from several threads.

    Every method may raise these:
        StreamsRebalancingException, NotUpToBoundException: retry with this handle.
        StateStoreMigratedException: look the store up again.
        StateStoreNotAvailableException: the client is ending or has ended; ask another instance.
        InvalidStateStorePartitionException: ask the instance that has the partition.
        ValueError: a key is not of the store's key format, or a datetime has no time zone.
        TypeError: a time is no time, or the number of arguments is wrong.
    """

    def __init__(self, store: CompositeSegments, codec: StoreCodec) -> None:
        if codec.window_end is None:
            raise ValueError("a window store's codec needs to know where its windows end")
        self._store = store
        self._codec = codec

    @overload
    def fetch(self, key: object, time: Moment, /) -> object: ...

    @overload
    def fetch(self, key: object, from_time: Moment, to_time: Moment, /) -> WindowStoreIterator: ...

    @overload
    def fetch(
        self, from_key: object | None, to_key: object | None, from_time: Moment, to_time: Moment, /
    ) -> KeyValueIterator: ...

    def fetch(self, *arguments: object) -> object:
        """Return the value of one window, or None; a key's windows; or the windows of a range of keys (#fetch).

        `fetch(key, time)` finds the window that starts exactly at `time`; `fetch(key, from_time, to_time)` and
        `fetch(from_key, to_key, from_time, to_time)` give iterators. Raises as every method does.
        """
        if len(arguments) == 2:
            warn_of_ms(arguments[1:])
            return self._get(*arguments)  # type: ignore[arg-type]
        warn_of_ms(arguments[-2:])
        return self._fetch(arguments, reverse=False)

    @overload
    def backward_fetch(self, key: object, from_time: Moment, to_time: Moment, /) -> WindowStoreIterator: ...

    @overload
    def backward_fetch(
        self, from_key: object | None, to_key: object | None, from_time: Moment, to_time: Moment, /
    ) -> KeyValueIterator: ...

    def backward_fetch(self, *arguments: object) -> KeyValueIterator:
        """Return the iterators of `fetch` with the last record first (#backwardFetch). Raises as every method does."""
        warn_of_ms(arguments[-2:])
        return self._fetch(arguments, reverse=True)

    def all(self) -> KeyValueIterator:
        """Return every window of every key (#all). Raises as every method does."""
        return self._windows(None, None, 0, LATEST, reverse=False)

    def backward_all(self) -> KeyValueIterator:
        """Return every window of every key, last one first (#backwardAll). Raises as every method does."""
        return self._windows(None, None, 0, LATEST, reverse=True)

    def fetch_all(self, from_time: Moment, to_time: Moment) -> KeyValueIterator:
        """Return the windows of every key that start between the times (#fetchAll). Raises as every method does."""
        warn_of_ms((from_time, to_time))
        return self._windows(None, None, first_ms("from_time", from_time), last_ms("to_time", to_time), reverse=False)

    def backward_fetch_all(self, from_time: Moment, to_time: Moment) -> KeyValueIterator:
        """Return the records of `fetch_all`, last one first (#backwardFetchAll). Raises as every method does."""
        warn_of_ms((from_time, to_time))
        return self._windows(None, None, first_ms("from_time", from_time), last_ms("to_time", to_time), reverse=True)

    def _get(self, key: object, time: Moment) -> object:
        data, start = self._codec.key.encode(key), last_ms("time", time)
        if not (0 <= start <= LATEST and is_whole_ms(time)):
            self._store.check(data)
            return None
        value = self._store.get(data, window_key(data, start))
        return None if value is None else self._codec.decode_value(value)

    def _fetch(self, arguments: tuple[object, ...], reverse: bool) -> KeyValueIterator:
        if len(arguments) not in (3, 4):
            raise TypeError(f"{len(arguments)} arguments given; one or two keys and two times are needed")
        *keys, from_time, to_time = arguments
        earliest, latest = first_ms("from_time", from_time), last_ms("to_time", to_time)  # type: ignore[arg-type]
        if len(keys) == 2:
            return self._windows(keys[0], keys[1], earliest, latest, reverse=reverse)
        entries = self._store.fetch_key(self._codec.key.encode(keys[0]), earliest, latest, reverse)
        return WindowStoreIterator(entries, _start, self._codec.decode_value)

    def _windows(
        self, from_key: object | None, to_key: object | None, earliest: int, latest: int, *, reverse: bool
    ) -> KeyValueIterator:
        first, last = (None if key is None else self._codec.key.encode(key) for key in (from_key, to_key))
        entries = self._store.fetch(first, last, earliest, latest, reverse)
        return KeyValueIterator(entries, self._windowed, self._codec.decode_value)

    def _windowed(self, data: bytes) -> Windowed:
        return windowed(self._codec, data)


def windowed(codec: StoreCodec, data: bytes) -> Windowed:
    """The key and the window that a changelog key of a window store stands for."""
    key, start, _ = split_window_key(data)
    return Windowed(codec.key.decode(key), window_at(codec, start))


def window_at(codec: StoreCodec, start: int) -> Window:
    """The window of a window store that begins at `start` (ms)."""
    assert codec.window_end is not None, "the store is a window store"
    return Window(moment(start), moment(codec.window_end(start)))


def _start(data: bytes) -> object:
    return moment(split_window_key(data)[1])
