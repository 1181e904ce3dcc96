"""The endpoints of key-value stores: every method of ReadOnlyKeyValueStore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response

from streams_runtime.query.answers import json_answer
from streams_runtime.query.leaving import while_connected
from streams_runtime.query.openapi import ANSWERS, LINES
from streams_runtime.query.opening import Asked
from streams_runtime.query.parameters import (
    FromKey,
    Key,
    KeyBytes,
    Limit,
    Partitions,
    Prefix,
    Reverse,
    Stale,
    StoreName,
    ToKey,
    parse_key,
)
from streams_runtime.query.records import Walk
from streams_runtime.query.schemas import Count, Record
from streams_runtime.query.views import Entry, Queryable, StoreCodec, StoreType

_COUNTED: Final = 5000  # entries that a count reads before others have their turn


def key_value_routes(queryable: Queryable, walks: CapacityLimiter) -> APIRouter:
    """`/stores/{store}/keys/…`, `range`, `all`, `prefix`, `count`, `approximate-count`."""
    router = APIRouter(prefix="/stores/{store}", tags=["key-value stores"])
    ask: Callable[[str, list[int] | None, bool], Asked] = partial(Asked, queryable, StoreType.KEY_VALUE, walks=walks)

    def lines(asked: Asked, walk: Walk[Entry], key_bytes: bool, limit: int | None) -> Response:
        return asked.lines(walk, partial(shown, asked.codec), key_bytes, limit)

    @router.get("/keys/{key:text}", responses=ANSWERS[Record], summary="get: one key's value")
    def get_key(store: StoreName, key: Key, partition: Partitions = None, stale: Stale = False) -> Response:
        asked = ask(store, partition, stale)
        asked.check()
        codec = asked.codec
        parsed, data = parse_key(codec, store, "key", key)
        value = asked.for_key(data).read(lambda opened: opened.get(data))
        return json_answer({"key": parsed, "value": None if value is None else codec.decode_value(value)})

    @router.get("/range", responses=LINES[Record], summary="range, reverse_range: records between two keys")
    def get_range(
        store: StoreName,
        from_key: FromKey = None,
        to_key: ToKey = None,
        partition: Partitions = None,
        stale: Stale = False,
        reverse: Reverse = False,
        key_bytes: KeyBytes = False,
        limit: Limit = None,
    ) -> Response:
        asked = ask(store, partition, stale)
        walk = asked.read(lambda opened: opened.scan(*asked.bounds(from_key, to_key), reverse))
        return lines(asked, walk, key_bytes, limit)

    @router.get("/all", responses=LINES[Record], summary="all, reverse_all: every record")
    def get_all(
        store: StoreName,
        partition: Partitions = None,
        stale: Stale = False,
        reverse: Reverse = False,
        key_bytes: KeyBytes = False,
        limit: Limit = None,
    ) -> Response:
        asked = ask(store, partition, stale)
        return lines(asked, asked.read(lambda opened: opened.scan(None, None, reverse)), key_bytes, limit)

    @router.get("/prefix", responses=LINES[Record], summary="prefix_scan: records whose keys begin alike")
    def get_prefix(
        store: StoreName,
        prefix: Prefix,
        partition: Partitions = None,
        stale: Stale = False,
        key_bytes: KeyBytes = False,
        limit: Limit = None,
    ) -> Response:
        asked = ask(store, partition, stale)
        walk = asked.read(lambda opened: opened.prefix_scan(parse_key(asked.codec, store, "prefix", prefix)[1]))
        return lines(asked, walk, key_bytes, limit)

    @router.get("/count", responses=ANSWERS[Count], summary="How many records there are, by walking over all")
    async def count(request: Request, store: StoreName, partition: Partitions = None, stale: Stale = False) -> Response:
        asked = ask(store, partition, stale)

        async def counted() -> int:
            with await to_thread.run_sync(asked.read, lambda opened: opened.scan(None, None), limiter=walks) as entries:
                found = 0
                while taken := await to_thread.run_sync(asked.next_of, entries, _COUNTED, limiter=walks):
                    found += len(taken)
                return found

        return json_answer({"count": await while_connected(request, counted)})

    @router.get(
        "/approximate-count", responses=ANSWERS[Count], summary="approximate_num_entries: about how many; cheap"
    )
    def approximate_count(store: StoreName, partition: Partitions = None, stale: Stale = False) -> Response:
        found = ask(store, partition, stale).read(lambda opened: opened.approximate_num_entries())
        return json_answer({"count": found})

    return router


def shown(codec: StoreCodec, entry: Entry) -> Mapping[str, object]:
    """One record as a line has it."""
    return {"key": codec.key.decode(entry[0]), "value": codec.decode_value(entry[1])}
