"""A handle over the local partitions of a session store, as KafkaStreams#store gives them."""

from __future__ import annotations

from typing import overload

from streams_runtime.query.stores.composite import CompositeSegments
from streams_runtime.query.stores.iterators import KeyValueIterator
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
from streams_runtime.state.window_keys import LATEST, session_key, split_session_key


class ReadOnlySessionStore:
    """Reads the local partitions of a session store (ReadOnlySessionStore); StreamsClient.store gives one.

    Times are aware datetimes; ints of ms since 1970 are deprecated and warn. A session's window includes its end. Keys
    of a range are inclusive, and None leaves that side open. Sessions whose end is older than the store's retention,
    counted back from the newest end, are gone. Records come in the order of the keys' bytes, each key's by end and then
    start; the `backward_` methods give the same records in reverse. Usable from several threads.

    Every method may raise these:
        StreamsRebalancingException, NotUpToBoundException: retry with this handle.
        StateStoreMigratedException: look the store up again.
        StateStoreNotAvailableException: the client is ending or has ended; ask another instance.
        InvalidStateStorePartitionException: ask the instance that has the partition.
        ValueError: a key is not of the store's key format, or a datetime has no time zone.
        TypeError: a time is no time, or the number of arguments is wrong.
    """

    def __init__(self, store: CompositeSegments, codec: StoreCodec) -> None:
        self._store = store
        self._codec = codec

    @overload
    def fetch(self, key: object, /) -> KeyValueIterator: ...

    @overload
    def fetch(self, from_key: object | None, to_key: object | None, /) -> KeyValueIterator: ...

    def fetch(self, *keys: object) -> KeyValueIterator:
        """Return the sessions of one key, `fetch(key)`, or of a range of keys, `fetch(from_key, to_key)` (#fetch).

        Raises as every method does.
        """
        return self._find(keys, 0, LATEST, reverse=False)

    @overload
    def backward_fetch(self, key: object, /) -> KeyValueIterator: ...

    @overload
    def backward_fetch(self, from_key: object | None, to_key: object | None, /) -> KeyValueIterator: ...

    def backward_fetch(self, *keys: object) -> KeyValueIterator:
        """Return the records of `fetch`, last one first (#backwardFetch). Raises as every method does."""
        return self._find(keys, 0, LATEST, reverse=True)

    def fetch_session(self, key: object, start: Moment, end: Moment) -> object:
        """Return the value of the session that has exactly this `start` and `end`, or None (#fetchSession).

        Raises as every method does.
        """
        warn_of_ms((start, end))
        data, first, last = self._codec.key.encode(key), last_ms("start", start), last_ms("end", end)
        if not (0 <= first <= last <= LATEST and is_whole_ms(start) and is_whole_ms(end)):
            self._store.check(data)
            return None
        value = self._store.get(data, session_key(data, first, last))
        return None if value is None else self._codec.decode_value(value)

    @overload
    def find_sessions(self, key: object, earliest_end: Moment, latest_start: Moment, /) -> KeyValueIterator: ...

    @overload
    def find_sessions(
        self, from_key: object | None, to_key: object | None, earliest_end: Moment, latest_start: Moment, /
    ) -> KeyValueIterator: ...

    def find_sessions(self, *arguments: object) -> KeyValueIterator:
        """Return sessions that end at `earliest_end` or later and start by `latest_start` (#findSessions).

        They are those of one key, or of a range of keys. With `earliest_end` before `latest_start` these are the
        sessions that share a moment with that time. Raises as every method does.
        """
        warn_of_ms(arguments[-2:])
        return self._find_between(arguments, reverse=False)

    @overload
    def backward_find_sessions(
        self, key: object, earliest_end: Moment, latest_start: Moment, /
    ) -> KeyValueIterator: ...

    @overload
    def backward_find_sessions(
        self, from_key: object | None, to_key: object | None, earliest_end: Moment, latest_start: Moment, /
    ) -> KeyValueIterator: ...

    def backward_find_sessions(self, *arguments: object) -> KeyValueIterator:
        """Return the records of `find_sessions`, last one first (#backwardFindSessions).

        Raises as every method does.
        """
        warn_of_ms(arguments[-2:])
        return self._find_between(arguments, reverse=True)

    def _find_between(self, arguments: tuple[object, ...], reverse: bool) -> KeyValueIterator:
        if len(arguments) not in (3, 4):
            raise TypeError(f"{len(arguments)} arguments given; one or two keys and two times are needed")
        *keys, earliest, latest = arguments
        first, last = first_ms("earliest_end", earliest), last_ms("latest_start", latest)  # type: ignore[arg-type]
        return self._find(tuple(keys), first, last, reverse=reverse)

    def _find(self, keys: tuple[object, ...], earliest: int, latest: int, *, reverse: bool) -> KeyValueIterator:
        if len(keys) not in (1, 2):
            raise TypeError(f"{len(keys)} keys given; one, or the two ends of a range, are needed")
        encoded = [None if key is None and len(keys) == 2 else self._codec.key.encode(key) for key in keys]
        if len(encoded) == 1 and encoded[0] is not None:
            entries = self._store.fetch_key(encoded[0], earliest, latest, reverse)
        else:
            entries = self._store.fetch(encoded[0], encoded[-1], earliest, latest, reverse)
        return KeyValueIterator(entries, self._windowed, self._codec.decode_value)

    def _windowed(self, data: bytes) -> Windowed:
        return session_windowed(self._codec, data)


def session_windowed(codec: StoreCodec, data: bytes) -> Windowed:
    """The key and the session that a changelog key of a session store stands for."""
    key, start, end = split_session_key(data)
    return Windowed(codec.key.decode(key), Window(moment(start), moment(end)))
