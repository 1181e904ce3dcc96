"""The endpoints of window and session stores: every method of ReadOnlyWindowStore and ReadOnlySessionStore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from anyio import CapacityLimiter
from fastapi import APIRouter, Response

from streams_runtime.query.answers import json_answer
from streams_runtime.query.openapi import ANSWERS, LINES
from streams_runtime.query.opening import Asked
from streams_runtime.query.parameters import (
    FromKey,
    FromTime,
    Key,
    KeyBytes,
    Limit,
    Partitions,
    Reverse,
    SessionEnd,
    Stale,
    StoreName,
    Time,
    ToKey,
    ToTime,
    parse_key,
)
from streams_runtime.query.schemas import WindowedRecord
from streams_runtime.query.sessions import ReadOnlySessionStore, session_windowed
from streams_runtime.query.times import parse_time
from streams_runtime.query.views import Entry, Queryable, StoreCodec, StoreType
from streams_runtime.query.windowed import Window, first_ms, last_ms, later
from streams_runtime.query.windows import ReadOnlyWindowStore, windowed
from streams_runtime.state.window_keys import LATEST


def window_routes(queryable: Queryable, walks: CapacityLimiter) -> APIRouter:
    """`/stores/{store}/window/…`, and `windows/keys/…`, `windows/range` and `windows/all`."""
    router = APIRouter(prefix="/stores/{store}", tags=["window stores"])
    ask: Callable[[str, list[int] | None, bool], Asked] = partial(Asked, queryable, StoreType.WINDOW, walks=walks)

    @router.get("/window/{key:text}", responses=ANSWERS[WindowedRecord], summary="fetch: the window of a key at a time")
    def fetch_one(
        store: StoreName, key: Key, time: Time, partition: Partitions = None, stale: Stale = False
    ) -> Response:
        asked = ask(store, partition, stale)
        asked.check()
        codec, start = asked.codec, parse_time("time", time)
        parsed, data = parse_key(codec, store, "key", key)
        value = asked.for_key(data).read_segments(
            lambda opened: ReadOnlyWindowStore(opened, codec).fetch(parsed, start)
        )
        return json_answer(_windowed(parsed, Window(start, later(start, codec.window_size or timedelta())), value))

    _many(router, "windows", ask, window_shown, "windows that start between the times")

    @router.get("/windows/all", responses=LINES[WindowedRecord], summary="all, fetch_all: every key's windows")
    def fetch_all(
        store: StoreName,
        from_time: FromTime = None,
        to_time: ToTime = None,
        partition: Partitions = None,
        stale: Stale = False,
        reverse: Reverse = False,
        key_bytes: KeyBytes = False,
        limit: Limit = None,
    ) -> Response:
        asked = ask(store, partition, stale)
        walk = asked.read_segments(lambda opened: opened.fetch(None, None, *_times(from_time, to_time), reverse))
        return asked.lines(walk, partial(window_shown, asked.codec), key_bytes, limit)

    return router


def session_routes(queryable: Queryable, walks: CapacityLimiter) -> APIRouter:
    """`/stores/{store}/session/…`, and `sessions/keys/…` and `sessions/range`."""
    router = APIRouter(prefix="/stores/{store}", tags=["session stores"])
    ask: Callable[[str, list[int] | None, bool], Asked] = partial(Asked, queryable, StoreType.SESSION, walks=walks)

    @router.get("/session/{key:text}", responses=ANSWERS[WindowedRecord], summary="fetch_session: one session of a key")
    def fetch_session(
        store: StoreName,
        key: Key,
        start: Time,
        end: SessionEnd,
        partition: Partitions = None,
        stale: Stale = False,
    ) -> Response:
        asked = ask(store, partition, stale)
        asked.check()
        codec, bounds = asked.codec, Window(parse_time("start", start), parse_time("end", end))
        parsed, data = parse_key(codec, store, "key", key)
        value = asked.for_key(data).read_segments(
            lambda opened: ReadOnlySessionStore(opened, codec).fetch_session(parsed, bounds.start, bounds.end)
        )
        return json_answer(_windowed(parsed, bounds, value))

    _many(router, "sessions", ask, session_shown, "sessions that end at fromTime or later and start by toTime")
    return router


def _many(
    router: APIRouter,
    name: str,
    ask: Callable[[str, list[int] | None, bool], Asked],
    shown: Callable[[StoreCodec, Entry], Mapping[str, object]],
    which: str,
) -> None:
    """`NAME/keys/…` and `NAME/range`, which both kinds of store have."""

    @router.get(f"/{name}/keys/{{key:text}}", responses=LINES[WindowedRecord], summary=f"fetch: one key's {which}")
    def fetch_key(  # noqa: PLR0913, PLR0917 - each is a parameter of the URL
        store: StoreName,
        key: Key,
        from_time: FromTime = None,
        to_time: ToTime = None,
        partition: Partitions = None,
        stale: Stale = False,
        reverse: Reverse = False,
        key_bytes: KeyBytes = False,
        limit: Limit = None,
    ) -> Response:
        asked = ask(store, partition, stale)
        asked.check()
        data, times = parse_key(asked.codec, store, "key", key)[1], _times(from_time, to_time)
        walk = asked.for_key(data).read_segments(lambda opened: opened.fetch_key(data, *times, reverse))
        return asked.lines(walk, partial(shown, asked.codec), key_bytes, limit)

    @router.get(f"/{name}/range", responses=LINES[WindowedRecord], summary=f"fetch: a range of keys, {which}")
    def fetch_range(  # noqa: PLR0913, PLR0917 - each is a parameter of the URL
        store: StoreName,
        from_key: FromKey = None,
        to_key: ToKey = None,
        from_time: FromTime = None,
        to_time: ToTime = None,
        partition: Partitions = None,
        stale: Stale = False,
        reverse: Reverse = False,
        key_bytes: KeyBytes = False,
        limit: Limit = None,
    ) -> Response:
        asked = ask(store, partition, stale)
        times = _times(from_time, to_time)
        walk = asked.read_segments(lambda opened: opened.fetch(*asked.bounds(from_key, to_key), *times, reverse))
        return asked.lines(walk, partial(shown, asked.codec), key_bytes, limit)


def window_shown(codec: StoreCodec, entry: Entry) -> Mapping[str, object]:
    """One window as a line has it."""
    return _windowed(*windowed(codec, entry[0]), codec.decode_value(entry[1]))


def session_shown(codec: StoreCodec, entry: Entry) -> Mapping[str, object]:
    """One session as a line has it."""
    return _windowed(*session_windowed(codec, entry[0]), codec.decode_value(entry[1]))


def _windowed(key: object, window: Window, value: object) -> dict[str, Any]:
    return {"key": key, "window": {"start": window.start, "end": window.end}, "value": value}


def _times(from_time: str | None, to_time: str | None) -> tuple[int, int]:
    """The times in ms; an open end is the first or the last that a key can hold."""
    return (
        0 if from_time is None else first_ms("fromTime", parse_time("fromTime", from_time)),
        LATEST if to_time is None else last_ms("toTime", parse_time("toTime", to_time)),
    )
