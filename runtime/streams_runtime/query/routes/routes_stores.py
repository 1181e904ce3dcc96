"""The endpoints about all stores: which there are, and who has their partitions."""

from __future__ import annotations

from fastapi import APIRouter, Response

from streams_runtime.errors import StreamsRebalancingException
from streams_runtime.query.openapi.http_schemas import Owners, Stores
from streams_runtime.query.openapi.openapi_document import ANSWERS
from streams_runtime.query.server.http_answers import json_answer
from streams_runtime.query.server.url_parameters import StoreName
from streams_runtime.query.stores.store_target import owners_of
from streams_runtime.query.stores.views import Queryable
from streams_runtime.state.serdes import key_serde
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

FORMATS = ("string", "bytes", "long", "int", "double", "json")
"""Of keys, by the names that a topology has for them."""


def store_routes(queryable: Queryable) -> APIRouter:
    """`/stores` and `/stores/{store}/owners`."""
    router = APIRouter(prefix="/stores", tags=["stores"])

    @router.get("", responses=ANSWERS[Stores], summary="Every store of the topology")
    def stores() -> Response:
        found = [
            {"name": name, "type": str(queryable.store_type(name)), "partitions": sorted(queryable.views(name))}
            for name in sorted(queryable.store_names())
        ]
        return json_answer({"stores": found})

    @router.get("/{store}/owners", responses=ANSWERS[Owners], summary="Who has each partition of a store")
    def owners(store: StoreName) -> Response:
        found = sorted(owners_of(queryable, store).items())
        rows = [{"partition": number, "instance": owner.instance, "url": owner.url} for number, owner in found]
        document = {"store": store, "partitions": queryable.partition_count(store), "owners": rows}
        return json_answer(document | {"keyFormat": _key_format(queryable, store)})

    return router


def _key_format(queryable: Queryable, store: str) -> str | None:
    """The name of the format of the store's keys, by which clients find a key's partition themselves."""
    try:
        key = queryable.codec(store).key
    except StreamsRebalancingException:
        return None  # the topology is not analysed yet; who has what is known all the same
    return next((name for name in FORMATS if key_serde(Format(name)) is key), None)
