"""The application as a whole: its topology, its instances, and the state of each as that instance gives it."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Path, Request, Response

from streams_runtime.lifecycle.remedies import remedy_named
from streams_runtime.query.openapi.http_schemas import Instances
from streams_runtime.query.openapi.openapi_document import OVERVIEW, RELAYED_STATE
from streams_runtime.query.routes.routes_relay import relayed_answer
from streams_runtime.query.server.caller_gone import while_connected
from streams_runtime.query.server.http_answers import json_answer
from streams_runtime.query.stores.views import Inspectable, KnownInstance
from streams_runtime.query.wire.problems import InstanceNotReachableException

Name = Annotated[str, Path(description="Name of an instance, as /instances lists it.")]


def overview_routes(queryable: Inspectable) -> APIRouter:
    """`/topology`, `/instances` and `/instances/{instance}/state`. None of them waits for a store.

    The state of another instance is asked for with the caller's token, at the address that this one vouches for.
    """
    router = APIRouter(tags=["the application"])
    threads = CapacityLimiter(2)  # of their own: the brokers are asked in them, and answer late at times

    @router.get("/topology", responses=OVERVIEW[None], summary="Steps, stores and topics, and where a drawing has them")
    async def topology() -> Response:
        return json_answer(await to_thread.run_sync(lambda: queryable.topology_document, limiter=threads))

    @router.get("/instances", responses=OVERVIEW[Instances], summary="Every instance of the application, and its URL")
    async def instances() -> Response:
        known = await to_thread.run_sync(queryable.instances, limiter=threads)
        return json_answer({"instances": [_row(each, each.url == queryable.url) for each in known]})

    @router.get("/instances/{instance}/state", responses=RELAYED_STATE, summary="What /state of an instance answers")
    async def state(request: Request, instance: Name) -> Response:
        known = await to_thread.run_sync(queryable.instances, limiter=threads)
        url = next((each.url for each in known if each.instance == instance), None)
        if url is None:
            raise InstanceNotReachableException(
                f"no address of an instance {instance!r} is known here; look at /instances for those that there are"
            )
        if url == queryable.url:
            return json_answer(await to_thread.run_sync(queryable.describe, limiter=threads))
        return await while_connected(request, lambda: relayed_answer(url, "/state", request))

    return router


def _row(known: KnownInstance, own: bool) -> dict[str, Any]:
    word = known.last_word
    last = None if word is None else {**word, "remedy": remedy_named(word["class"])}
    return {
        "instance": known.instance,
        "url": known.url,
        "own": own,
        "inGroup": known.in_group,
        "lastWord": last,
    }
