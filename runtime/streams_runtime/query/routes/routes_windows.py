"""The endpoints of window and session stores: every method of ReadOnlyWindowStore and ReadOnlySessionStore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import APIRouter, Query, Response

from streams_runtime.query.openapi.http_schemas import WindowedRecord
from streams_runtime.query.openapi.openapi_document import ANSWERS, LINES
from streams_runtime.query.server.http_answers import json_answer
from streams_runtime.query.server.opened_stores import StoreReaders
from streams_runtime.query.server.url_parameters import (
    Key,
    SessionParameters,
    StoreName,
    TimeRangeParameters,
    WindowParameters,
    WindowRangeParameters,
)
from streams_runtime.query.stores.composite import CompositeSegments
from streams_runtime.query.stores.session_handle import ReadOnlySessionStore, session_windowed
from streams_runtime.query.stores.views import Entry, Queryable, StoreCodec, StoreType
from streams_runtime.query.stores.window_handle import ReadOnlyWindowStore, window_at, windowed
from streams_runtime.query.wire.windowed_keys import Window, last_ms


def window_routes(queryable: Queryable, walks: CapacityLimiter) -> APIRouter:
    """`/stores/{store}/window/…`, and `windows/keys/…`, `windows/range` and `windows/all`."""
    router = APIRouter(prefix="/stores/{store}", tags=["window stores"])
    readers = StoreReaders(queryable, StoreType.WINDOW, CompositeSegments, walks)

    @router.get("/window/{key:text}", responses=ANSWERS[WindowedRecord], summary="fetch: the window of a key at a time")
    def fetch_one(store: StoreName, key: Key, parameters: Annotated[WindowParameters, Query()]) -> Response:
        reader = readers.of(store, parameters)
        codec, start = reader.target.codec, parameters.start()
        parsed, data = reader.target.parse_key("key", key)
        value = reader.at_key(data).read(lambda opened: ReadOnlyWindowStore(opened, codec).fetch(parsed, start))
        return json_answer(_windowed(parsed, window_at(codec, last_ms("time", start)), value))

    _add_ranges(router, "windows", readers, window_shown, "windows that start between the times")

    @router.get("/windows/all", responses=LINES[WindowedRecord], summary="all, fetch_all: every key's windows")
    def fetch_all(store: StoreName, parameters: Annotated[TimeRangeParameters, Query()]) -> Response:
        reader = readers.of(store, parameters)
        walk = reader.read(lambda opened: opened.fetch(None, None, *parameters.time_bounds(), parameters.reverse))
        return reader.lines(walk, window_shown, parameters)

    return router


def session_routes(queryable: Queryable, walks: CapacityLimiter) -> APIRouter:
    """`/stores/{store}/session/…`, and `sessions/keys/…` and `sessions/range`."""
    router = APIRouter(prefix="/stores/{store}", tags=["session stores"])
    readers = StoreReaders(queryable, StoreType.SESSION, CompositeSegments, walks)

    @router.get("/session/{key:text}", responses=ANSWERS[WindowedRecord], summary="fetch_session: one session of a key")
    def fetch_session(store: StoreName, key: Key, parameters: Annotated[SessionParameters, Query()]) -> Response:
        reader = readers.of(store, parameters)
        codec, window = reader.target.codec, parameters.window()
        parsed, data = reader.target.parse_key("key", key)
        value = reader.at_key(data).read(
            lambda opened: ReadOnlySessionStore(opened, codec).fetch_session(parsed, window.start, window.end)
        )
        return json_answer(_windowed(parsed, window, value))

    _add_ranges(
        router, "sessions", readers, session_shown, "sessions that end at fromTime or later and start by toTime"
    )
    return router


def _add_ranges(
    router: APIRouter,
    name: str,
    readers: StoreReaders[CompositeSegments],
    shown: Callable[[StoreCodec, Entry], Mapping[str, object]],
    which: str,
) -> None:
    """`NAME/keys/…` and `NAME/range`, which both kinds of store have."""

    @router.get(f"/{name}/keys/{{key:text}}", responses=LINES[WindowedRecord], summary=f"fetch: one key's {which}")
    def fetch_key(store: StoreName, key: Key, parameters: Annotated[TimeRangeParameters, Query()]) -> Response:
        reader = readers.of(store, parameters)
        data, times = reader.target.parse_key("key", key)[1], parameters.time_bounds()
        reader = reader.at_key(data)
        walk = reader.read(lambda opened: opened.fetch_key(data, *times, parameters.reverse))
        return reader.lines(walk, shown, parameters)

    @router.get(f"/{name}/range", responses=LINES[WindowedRecord], summary=f"fetch: a range of keys, {which}")
    def fetch_range(store: StoreName, parameters: Annotated[WindowRangeParameters, Query()]) -> Response:
        times = parameters.time_bounds()
        reader = readers.of(store, parameters)
        walk = reader.read(
            lambda opened: opened.fetch(*parameters.key_bounds(reader.target), *times, parameters.reverse)
        )
        return reader.lines(walk, shown, parameters)


def window_shown(codec: StoreCodec, entry: Entry) -> Mapping[str, object]:
    """One window as a line has it."""
    return _windowed(*windowed(codec, entry[0]), codec.decode_value(entry[1]))


def session_shown(codec: StoreCodec, entry: Entry) -> Mapping[str, object]:
    """One session as a line has it."""
    return _windowed(*session_windowed(codec, entry[0]), codec.decode_value(entry[1]))


def _windowed(key: object, window: Window, value: object) -> dict[str, Any]:
    return {"key": key, "window": {"start": window.start, "end": window.end}, "value": value}
