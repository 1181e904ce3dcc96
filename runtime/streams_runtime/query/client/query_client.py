"""Queries from outside: given any one instance, the answer of the whole application."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

import orjson

from streams_runtime.query.client.client_http import QueryCredentials, Requests
from streams_runtime.query.client.client_records import Records
from streams_runtime.query.client.query_dispatcher import QueryDispatcher, RemoteQuery
from streams_runtime.query.stores.iterators import KeyValue
from streams_runtime.query.stores.position_bound import PositionBound
from streams_runtime.query.wire.json_values import to_plain

__all__ = ["DEADLINE_SECONDS", "QueryCredentials", "Records", "StreamsQueryClient"]

DEADLINE_SECONDS: Final = 30.0


class StreamsQueryClient:
    """Queries all instances of one application from outside; `url` is that of any instance.

    A key goes to the instance that has it (murmur2, as Kafka's producers choose partitions). Ranges and counts are put
    together from all partitions, each exactly once. A key is text in the store's key format, or an int, float, bytes or
    JSON object; values come as JSON holds them (bytes in base64); times are aware datetimes. `stale=True` also reads
    copies that may lag behind: standbys, and stores that are being restored. `partition` reads that one alone. Usable
    from several threads, and in `with`.

    Every method retries the retryable exceptions of KIP-216, a partition that moved and an instance that went away,
    until `deadline` seconds have passed; then it raises the last one.

    Raises:
        UnknownStateStoreException, StoreTypeMismatch, InvalidQueryException: fix the name, the method, or the key.
        InvalidStateStoreException: a subclass; the partition was on no instance, or all are closed. Ask again later.
        InstanceNotReachableException: nobody answers at the URL in the message; at the first URL it raises at once.
        QueryNotAuthenticatedException, QueryForbiddenException: present another token.
    """

    def __init__(
        self,
        url: str,
        deadline: float = DEADLINE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        credentials: QueryCredentials = QueryCredentials(),  # noqa: B008 - frozen
        jitter: Callable[[], float] = random.random,
        relay: bool = False,
    ) -> None:
        """Connect to nothing yet. `deadline` is in seconds, `credentials` are the token and the authorities to believe.

        `relay=True` reaches all instances through the one at `url`, as behind `kubectl port-forward`. `clock`, `sleep`
        and `jitter` (0 to 1, spreads the pauses) are for tests.

        Raises:
            ConfigException: `url` is none, or the authorities' certificates can't be read.
        """
        self._requests = Requests(url, credentials, clock, relay)
        self._dispatcher = QueryDispatcher(url, self._requests, deadline, clock, sleep, jitter)

    def with_position_bound(self, bound: PositionBound) -> StreamsQueryClient:
        """A client of the same connections whose answers contain what these records brought about (PositionBound).

        `bound` has of partitions of the store's inputs the offset of a record each, as a producer's callback gives it:
        who has sent a record reads what it did. A query waits until a store contains it, `deadline` seconds at most,
        and raises NotUpToBoundException then. What only reads another topic behind that one is not waited for:
        InvalidQueryException names the topics that a store is made of. It can't be had with `stale`.
        """
        made = copy.copy(self)
        made._dispatcher = self._dispatcher.bounded(bound)
        return made

    def get(self, store: str, key: object, *, as_of: datetime | None = None, stale: bool = False) -> object:
        """Return a key's value in a key-value store, or None where it has no such key (ReadOnlyKeyValueStore#get).

        With `as_of`, of a table with a history, the VersionedRecord that was valid then, or None
        (VersionedKeyValueStore#get). Raises as every method does.
        """
        return self.record(store, key, as_of=as_of, stale=stale).value

    def record(self, store: str, key: object, *, as_of: datetime | None = None, stale: bool = False) -> KeyValue:
        """Return a key of a key-value store, as the store has it, and its value or None, as `get` gives it.

        Raises as every method does.
        """
        if as_of is not None:
            query = RemoteQuery(store, "versions", {"asOf": as_of.isoformat()}, stale=stale)
            return self._dispatcher.one(query, _text(key))
        return self._dispatcher.one(RemoteQuery(store, "keys", stale=stale), _text(key))

    def range(
        self,
        store: str,
        from_key: object | None,
        to_key: object | None,
        *,
        reverse: bool = False,
        stale: bool = False,
        partition: int | None = None,
    ) -> Records:
        """Return the records of a key-value store from `from_key` to `to_key` (ReadOnlyKeyValueStore#range).

        Both ends are inclusive, None leaves one open, and records come in the order of the keys' bytes. A failure
        before the first record is retried as in every method; a later one is raised to the reader, who asks again:
        records are never left out silently. Raises as every method does.
        """
        return self._dispatcher.many(RemoteQuery(store, "range", _keys(from_key, to_key), reverse, stale, partition))

    def all(self, store: str, *, reverse: bool = False, stale: bool = False, partition: int | None = None) -> Records:
        """Return every record of a key-value store (ReadOnlyKeyValueStore#all).

        Order and failures are those of `range`.
        """
        return self.range(store, None, None, reverse=reverse, stale=stale, partition=partition)

    def prefix_scan(self, store: str, prefix: object, *, stale: bool = False, partition: int | None = None) -> Records:
        """Return the records whose keys' bytes begin with those of `prefix` (#prefixScan, KIP-614).

        They come and fail as those of `range`.
        """
        return self._dispatcher.many(RemoteQuery(store, "prefix", {"prefix": _text(prefix)}, False, stale, partition))

    def count(self, store: str, *, stale: bool = False, partition: int | None = None) -> int:
        """Count the records of a key-value store over all partitions, by walking over them.

        Raises as every method does.
        """
        return self._dispatcher.total(RemoteQuery(store, "count", stale=stale, partition=partition))

    def approximate_num_entries(self, store: str, *, stale: bool = False, partition: int | None = None) -> int:
        """Estimate the number of records over all partitions, at little cost (#approximateNumEntries).

        Raises as every method does.
        """
        return self._dispatcher.total(RemoteQuery(store, "approximate-count", stale=stale, partition=partition))

    def fetch(self, store: str, key: object, time: datetime, *, stale: bool = False) -> object:
        """Return the value of the key's window that begins exactly at `time`, or None (ReadOnlyWindowStore#fetch).

        Raises as every method does.
        """
        return self.window(store, key, time, stale=stale).value

    def window(self, store: str, key: object, time: datetime, *, stale: bool = False) -> KeyValue:
        """Return the key's window that begins exactly at `time` as a Windowed key, with its value or None.

        Raises as every method does.
        """
        return self._dispatcher.one(RemoteQuery(store, "window", {"time": time.isoformat()}, stale=stale), _text(key))

    def fetch_session(self, store: str, key: object, start: datetime, end: datetime, *, stale: bool = False) -> object:
        """Return the value of the key's session with exactly this `start` and `end`, or None (#fetchSession).

        Raises as every method does.
        """
        return self.session(store, key, start, end, stale=stale).value

    def session(self, store: str, key: object, start: datetime, end: datetime, *, stale: bool = False) -> KeyValue:
        """Return the key's session with exactly this `start` and `end` as a Windowed key, with its value or None.

        Raises as every method does.
        """
        bounds = {"start": start.isoformat(), "end": end.isoformat()}
        return self._dispatcher.one(RemoteQuery(store, "session", bounds, stale=stale), _text(key))

    def windows(
        self,
        store: str,
        from_key: object | None = None,
        to_key: object | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        *,
        reverse: bool = False,
        stale: bool = False,
        partition: int | None = None,
    ) -> Records:
        """Return windows of the keys between two that start between two times (ReadOnlyWindowStore#fetch, #fetchAll).

        All ends are inclusive, and None leaves one open. Records have a Windowed as key and come in the order of the
        keys' bytes, each key's by time. Give a key twice for its windows alone. Failures are those of `range`.
        """
        bounds = _keys(from_key, to_key) | _times(from_time, to_time)
        return self._dispatcher.many(RemoteQuery(store, "windows/range", bounds, reverse, stale, partition))

    def sessions(
        self,
        store: str,
        from_key: object | None = None,
        to_key: object | None = None,
        earliest_end: datetime | None = None,
        latest_start: datetime | None = None,
        *,
        reverse: bool = False,
        stale: bool = False,
        partition: int | None = None,
    ) -> Records:
        """Return sessions of the keys between two that end at `earliest_end` or later and start by `latest_start`.

        It is ReadOnlySessionStore#findSessions; ends, order and failures are those of `windows`.
        """
        bounds = _keys(from_key, to_key) | _times(earliest_end, latest_start)
        return self._dispatcher.many(RemoteQuery(store, "sessions/range", bounds, reverse, stale, partition))

    def close(self) -> None:
        """Close the connections; readers of ranges have to be done. May be called twice, and raises nothing."""
        self._requests.close()

    def __enter__(self) -> StreamsQueryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _keys(from_key: object | None, to_key: object | None) -> dict[str, str]:
    return {name: _text(key) for name, key in (("from", from_key), ("to", to_key)) if key is not None}


def _times(from_time: datetime | None, to_time: datetime | None) -> dict[str, str]:
    given = (("fromTime", from_time), ("toTime", to_time))
    return {name: moment.isoformat() for name, moment in given if moment is not None}


def _text(key: object) -> str:
    plain = to_plain(key)
    return plain if isinstance(plain, str) else orjson.dumps(plain).decode()
