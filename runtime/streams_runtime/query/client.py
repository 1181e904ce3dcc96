"""Queries from outside: given any one instance, the answer of the whole application."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

import orjson

from streams_runtime.query.client_asking import Asker
from streams_runtime.query.client_http import QueryCredentials, Requests
from streams_runtime.query.client_records import Records
from streams_runtime.query.iterators import KeyValue
from streams_runtime.query.wire import to_plain

__all__ = ["DEADLINE_SECONDS", "QueryCredentials", "Records", "StreamsQueryClient"]

DEADLINE_SECONDS: Final = 30.0


class StreamsQueryClient:
    """Asks the instances of one application; `url` is that of any of them.

    A key is sent to the instance that has it (murmur2, as Kafka's producers choose partitions); ranges and counts are
    put together from all partitions, each exactly once. Keys are given as text in the store's key format, or as int,
    float, bytes or a JSON object; values come as JSON tells them (bytes in base64). Times are aware datetimes.
    `stale=True` also reads copies that may lag behind, standbys and stores that are being restored; `partition` reads
    that one alone. `relay=True` reaches all instances through the one at `url`. Usable from several threads, in `with`.

    Every method may raise the exceptions of KIP-216. Retryable ones, a partition that moved and an instance that went
    away are tried again until `deadline` seconds have passed, after pauses that `jitter` (0 to 1) spreads; fatal ones
    never. Further: UnknownStateStoreException (fix the name), InvalidQueryException (fix the key),
    InstanceNotReachableException (nobody answers at the URL that the message names; of the first URL it is raised at
    once), QueryNotAuthenticatedException and QueryForbiddenException (present another token).
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
        self._requests = Requests(url, credentials, clock, relay)
        self._asker = Asker(url, self._requests, deadline, clock, sleep, jitter)

    def get(self, store: str, key: object, *, stale: bool = False) -> object:
        """The key's value, or None where the store has no such key."""
        return self.record(store, key, stale=stale).value

    def record(self, store: str, key: object, *, stale: bool = False) -> KeyValue:
        """The key as the store has it, and its value or None."""
        return self._asker.one(store, "keys", _text(key), {}, stale)

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
        """Records from `from_key` to `to_key`, both inclusive, None an open end, in order of the keys' bytes.

        A failure before the first record is retried as in every method; a later one is raised to the
        reader, who asks again: records are never left out silently.
        """
        return self._asker.many(store, "range", _keys(from_key, to_key), reverse, stale, partition)

    def all(self, store: str, *, reverse: bool = False, stale: bool = False, partition: int | None = None) -> Records:
        """Every record, as `range` gives them."""
        return self.range(store, None, None, reverse=reverse, stale=stale, partition=partition)

    def prefix_scan(self, store: str, prefix: object, *, stale: bool = False, partition: int | None = None) -> Records:
        """Records whose key's bytes begin with those of `prefix`, as `range` gives them."""
        return self._asker.many(store, "prefix", {"prefix": _text(prefix)}, False, stale, partition)

    def count(self, store: str, *, stale: bool = False, partition: int | None = None) -> int:
        """How many records the store has over all partitions, by walking over them."""
        return self._asker.total(store, "count", stale, partition)

    def approximate_num_entries(self, store: str, *, stale: bool = False, partition: int | None = None) -> int:
        """About how many records the store has over all partitions; cheap."""
        return self._asker.total(store, "approximate-count", stale, partition)

    def fetch(self, store: str, key: object, time: datetime, *, stale: bool = False) -> object:
        """Of a window store: the value of the key's window that begins exactly at `time`, or None."""
        return self.window(store, key, time, stale=stale).value

    def window(self, store: str, key: object, time: datetime, *, stale: bool = False) -> KeyValue:
        """The same with the window, as a Windowed key."""
        return self._asker.one(store, "window", _text(key), {"time": time.isoformat()}, stale)

    def fetch_session(self, store: str, key: object, start: datetime, end: datetime, *, stale: bool = False) -> object:
        """Of a session store: the value of the key's session with exactly this start and end, or None."""
        return self.session(store, key, start, end, stale=stale).value

    def session(self, store: str, key: object, start: datetime, end: datetime, *, stale: bool = False) -> KeyValue:
        """The same with the session, as a Windowed key."""
        return self._asker.one(
            store, "session", _text(key), {"start": start.isoformat(), "end": end.isoformat()}, stale
        )

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
        """Windows of the keys between two that start between two times, all inclusive, None an open end.

        Records have a Windowed as key, and come in order of the keys' bytes, each key's by time. Those of one key:
        give it twice.
        """
        bounds = _keys(from_key, to_key) | _times(from_time, to_time)
        return self._asker.many(store, "windows/range", bounds, reverse, stale, partition)

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
        """Sessions of the keys between two that end at `earliest_end` or later and start by `latest_start`.

        As `windows` otherwise.
        """
        bounds = _keys(from_key, to_key) | _times(earliest_end, latest_start)
        return self._asker.many(store, "sessions/range", bounds, reverse, stale, partition)

    def close(self) -> None:
        """Close the connections; readers of a range must be done. May be called twice."""
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
