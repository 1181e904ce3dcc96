"""The HTTP application of an instance: its routes and its gate."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Depends, FastAPI, Request, Response, params
from fastapi.security import HTTPBearer
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from streams_runtime.query.openapi.docs_page import docs_page
from streams_runtime.query.openapi.openapi_document import openapi_of
from streams_runtime.query.routes.routes_key_value import key_value_routes
from streams_runtime.query.routes.routes_operations import operation_routes
from streams_runtime.query.routes.routes_overview import overview_routes
from streams_runtime.query.routes.routes_page import page_routes
from streams_runtime.query.routes.routes_relay import relay_routes
from streams_runtime.query.routes.routes_stores import store_routes
from streams_runtime.query.routes.routes_windows import session_routes, window_routes
from streams_runtime.query.server.access import Gate
from streams_runtime.query.server.http_answers import json_answer
from streams_runtime.query.server.opened_stores import WALKS
from streams_runtime.query.server.point_reads import PointReads
from streams_runtime.query.server.problem_handlers import answer_with_problems
from streams_runtime.query.server.url_parameters import check_parameters
from streams_runtime.query.stores.views import Inspectable

_BEARER = HTTPBearer(auto_error=False, description="As spec.queries.access of the resource says.")


def create_app(queryable: Inspectable, registry: CollectorRegistry, gate: Gate | None = None) -> ASGIApp:
    """The application that answers for `queryable`; `registry` is what `/metrics` shows.

    `gate` stands before stores, state, topology and metrics; probes, figures, the description of the endpoints and the
    files of the page are open.
    Stores are read in worker threads, but for single keys (point_reads.py). Health, readiness, state and metrics never
    wait for them, and no key waits for walks over stores.
    """
    app = FastAPI(title="Streams queries", docs_url=None, redoc_url=None, openapi_url=None)
    answer_with_problems(app)
    guard = [] if gate is None else [_dependency_on(gate)]
    app.include_router(operation_routes(queryable, registry, guard))
    walks = CapacityLimiter(WALKS)
    stores = (key_value_routes, window_routes, session_routes)
    for router in (store_routes(queryable), *(routes(queryable, walks) for routes in stores)):
        app.include_router(router, dependencies=[*guard, Depends(check_parameters)])
    app.include_router(relay_routes(queryable), dependencies=guard)
    app.include_router(overview_routes(queryable), dependencies=guard)
    app.include_router(page_routes())
    _describe(app)
    return PointReads(app, queryable, gate)


def _dependency_on(gate: Gate) -> params.Depends:
    """The gate as a dependency; how a token is presented is part of the OpenAPI document."""

    async def admit(request: Request, _: Annotated[object, Depends(_BEARER)]) -> None:
        await gate.admit(request.headers.get("Authorization"), "" if request.client is None else request.client.host)

    dependency: params.Depends = Depends(admit)
    return dependency


def _describe(app: FastAPI) -> None:
    """`/docs` and `/openapi.json`, made once, for the first who asks: the routes do not change."""

    @functools.cache
    def document() -> Mapping[str, Any]:
        return openapi_of(app)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return json_answer(document())

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(docs_page(document()), media_type="text/html")
