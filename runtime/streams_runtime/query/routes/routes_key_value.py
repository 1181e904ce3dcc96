"""The endpoints of key-value stores: every method of ReadOnlyKeyValueStore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request, Response

from streams_runtime.query.openapi.http_schemas import Count, Record, Version
from streams_runtime.query.openapi.openapi_document import ANSWERS, LINES
from streams_runtime.query.server.caller_gone import while_connected
from streams_runtime.query.server.http_answers import json_answer
from streams_runtime.query.server.opened_stores import StoreReaders
from streams_runtime.query.server.url_parameters import (
    AllParameters,
    Key,
    KeyRangeParameters,
    PrefixParameters,
    StoreName,
    StoreParameters,
    VersionParameters,
)
from streams_runtime.query.stores.composite import CompositeStore
from streams_runtime.query.stores.key_value_handle import versioned_record
from streams_runtime.query.stores.views import Entry, Queryable, StoreCodec, StoreType

_COUNTED: Final = 5000  # entries that a count reads before it gives its thread to others


def key_value_routes(queryable: Queryable, walks: CapacityLimiter) -> APIRouter:
    """`/stores/{store}/keys/…`, `versions/…`, `range`, `all`, `prefix`, `count`, `approximate-count`."""
    router = APIRouter(prefix="/stores/{store}", tags=["key-value stores"])
    readers = StoreReaders(queryable, StoreType.KEY_VALUE, CompositeStore, walks)

    @router.get("/keys/{key:text}", responses=ANSWERS[Record], summary="get: one key's value")
    def get_key(store: StoreName, key: Key, parameters: Annotated[StoreParameters, Query()]) -> Response:
        reader = readers.of(store, parameters)
        parsed, data = reader.target.parse_key("key", key)
        value = reader.at_key(data).read(lambda opened: opened.get(data))
        shown_value = None if value is None else reader.target.codec.decode_value(value)
        return json_answer({"key": parsed, "value": shown_value})

    _add_versions(router, readers)

    @router.get("/range", responses=LINES[Record], summary="range, reverse_range: records between two keys")
    def get_range(store: StoreName, parameters: Annotated[KeyRangeParameters, Query()]) -> Response:
        reader = readers.of(store, parameters)
        walk = reader.read(lambda opened: opened.scan(*parameters.key_bounds(reader.target), parameters.reverse))
        return reader.lines(walk, shown, parameters)

    @router.get("/all", responses=LINES[Record], summary="all, reverse_all: every record")
    def get_all(store: StoreName, parameters: Annotated[AllParameters, Query()]) -> Response:
        reader = readers.of(store, parameters)
        walk = reader.read(lambda opened: opened.scan(None, None, parameters.reverse))
        return reader.lines(walk, shown, parameters)

    @router.get("/prefix", responses=LINES[Record], summary="prefix_scan: records whose keys begin alike")
    def get_prefix(store: StoreName, parameters: Annotated[PrefixParameters, Query()]) -> Response:
        reader = readers.of(store, parameters)
        walk = reader.read(lambda opened: opened.prefix_scan(reader.target.parse_key("prefix", parameters.prefix)[1]))
        return reader.lines(walk, shown, parameters)

    @router.get("/count", responses=ANSWERS[Count], summary="How many records there are, by walking over all")
    async def count(request: Request, store: StoreName, parameters: Annotated[StoreParameters, Query()]) -> Response:
        reader = readers.of(store, parameters)

        async def counted() -> int:
            opened = await to_thread.run_sync(reader.read, lambda opened: opened.scan(None, None), limiter=walks)
            with opened as entries:
                found = 0
                while taken := await to_thread.run_sync(reader.take, entries, _COUNTED, limiter=walks):
                    found += len(taken)
                return found

        return json_answer({"count": await while_connected(request, counted)})

    @router.get(
        "/approximate-count", responses=ANSWERS[Count], summary="approximate_num_entries: about how many; cheap"
    )
    def approximate_count(store: StoreName, parameters: Annotated[StoreParameters, Query()]) -> Response:
        found = readers.of(store, parameters).read(lambda opened: opened.approximate_num_entries())
        return json_answer({"count": found})

    return router


def _add_versions(router: APIRouter, readers: StoreReaders[CompositeStore]) -> None:
    @router.get("/versions/{key:text}", responses=ANSWERS[Version], summary="get: what one key had at a time")
    def get_version(store: StoreName, key: Key, parameters: Annotated[VersionParameters, Query()]) -> Response:
        reader = readers.of(store, parameters)
        parsed, data = reader.target.parse_key("key", key)
        version = reader.at_key(data).read(lambda opened: opened.as_of(data, parameters.moment()))
        found = versioned_record(reader.target.codec, version)
        value, since, until = (None, None, None) if found is None else found
        return json_answer({"key": parsed, "value": value, "validFrom": since, "validTo": until})


def shown(codec: StoreCodec, entry: Entry) -> Mapping[str, object]:
    """One record as a line has it."""
    return {"key": codec.key.decode(entry[0]), "value": codec.decode_value(entry[1])}
