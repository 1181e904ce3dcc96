"""Health, readiness, metrics and state of an instance; none of them ever waits for a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Response
from fastapi.params import Depends
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from streams_runtime.query.openapi.openapi_document import GATED, Responses
from streams_runtime.query.server import liveness
from streams_runtime.query.server.http_answers import json_answer
from streams_runtime.query.stores.views import Inspectable
from streams_runtime.states import ClientState

T = TypeVar("T")
_NOT_SO: Responses = {503: {"description": "It is not so.", "content": {"application/json": {"schema": {}}}}}
_UNNAMED = {
    "tasks": ("id", "state"),
    "standbys": ("id", "lag", "age"),
    "lag": ("position", "lag"),
    "restoration": ("position", "end", "ended_at"),
}


def operation_routes(queryable: Inspectable, registry: CollectorRegistry, guard: Sequence[Depends]) -> APIRouter:
    """`/healthz`, `/readyz` and `/state/figures` for everybody; `/state` and `/metrics` behind `guard`."""
    router = APIRouter(tags=["the instance"])
    threads = CapacityLimiter(2)  # of their own, so that store reads can't use up the threads that these need

    async def in_thread(function: Callable[[], T]) -> T:
        return await to_thread.run_sync(function, limiter=threads)

    @router.get("/healthz", responses=_NOT_SO, summary="200: its threads' loops turn. 503: one is stuck, and which")
    async def healthz() -> Response:
        stuck = queryable.stuck_threads()
        return json_answer(liveness.health_document(stuck, time.time()), 503 if stuck else 200)

    @router.get(
        "/readyz",
        responses=_NOT_SO,
        summary="200: RUNNING, with an analysed topology, and its threads' loops turn. 503: anything else",
    )
    async def readyz() -> Response:
        state, stuck = queryable.state, queryable.stuck_threads(liveness.READY_SECONDS)
        # A topology that Spark has never accepted may be refused yet: a rolling change must not go on by this answer.
        ready = state is ClientState.RUNNING and queryable.is_analysed and not stuck
        body = {"state": state, "sparkReady": queryable.spark_ready}
        body |= {"stuck": [each.thread for each in stuck]} if stuck else {}
        return json_answer(body, 200 if ready else 503)

    @router.get(
        "/metrics",
        dependencies=guard,
        response_class=PlainTextResponse,
        responses=GATED,
        summary="Metrics for Prometheus, by Kafka Streams' names",
    )
    async def metrics() -> Response:
        return Response(
            await in_thread(lambda: generate_latest(registry)), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    @router.get(
        "/state",
        dependencies=guard,
        responses=GATED,
        summary="Client, threads, tasks, restoration, lag, counters, error",
    )
    async def state() -> Response:
        return json_answer(await in_thread(queryable.describe))

    @router.get(
        "/state/figures", summary="What the resource's status rests on: tasks, offsets, lag, restoration, without names"
    )
    async def state_figures() -> Response:
        return json_answer(figures(await in_thread(queryable.describe)))

    return router


def figures(description: Mapping[str, Any]) -> dict[str, Any]:
    """Of `/state` only what status shows or follows from, as numbers without names. The operator reads it without a
    token, so it holds none that could get lost.
    """
    shown = {
        part: [{field: each.get(field) for field in fields} for each in description[part]]
        for part, fields in _UNNAMED.items()
    }
    warm_up, snapshots = description["warm_up"], description["snapshots"]
    shown_of_it = None if warm_up is None else {field: warm_up[field] for field in ("ready", "remaining")}
    return {
        "state": description["state"],
        "spark_ready": description["spark_ready"],
        **shown,
        "warm_up": shown_of_it,
        "snapshot_bytes": 0 if snapshots is None else snapshots["received_bytes"],
    }
