"""The HTTP application of an instance: its routes, its gate, and what answers when they can't."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import structlog
from anyio import CapacityLimiter
from fastapi import Depends, FastAPI, Request, Response, params
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams_runtime.errors import StateStoreNotAvailableException, StreamsException
from streams_runtime.query import problems
from streams_runtime.query.access import Gate
from streams_runtime.query.answers import BrokenOff, Misdirected, json_answer, problem_answer
from streams_runtime.query.docs_page import docs_page
from streams_runtime.query.leaving import CallerLeft
from streams_runtime.query.openapi import openapi_of
from streams_runtime.query.opening import WALKS
from streams_runtime.query.parameters import known_parameters
from streams_runtime.query.point_reads import PointReads
from streams_runtime.query.routes_key_value import key_value_routes
from streams_runtime.query.routes_operations import operation_routes
from streams_runtime.query.routes_relay import relay_routes
from streams_runtime.query.routes_stores import store_routes
from streams_runtime.query.routes_windows import session_routes, window_routes
from streams_runtime.query.views import Queryable

_BEARER = HTTPBearer(auto_error=False, description="As spec.queries.access of the resource says.")

_log = structlog.get_logger(__name__)


def create_app(queryable: Queryable, registry: CollectorRegistry, gate: Gate | None = None) -> ASGIApp:
    """The application that answers for `queryable`; `registry` is what `/metrics` shows.

    `gate` stands before stores, state and metrics; probes, figures and the description of the endpoints are open.
    Stores are read in worker threads, but for single keys (point_reads.py). Health, readiness, state and metrics never
    wait for them, and no key waits for walks over stores.
    """
    app = FastAPI(title="Streams queries", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(_LastResort)
    app.add_exception_handler(StreamsException, _on_streams_exception)
    app.add_exception_handler(Misdirected, _on_misdirected)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_invalid_parameters)
    guard = [] if gate is None else [_guard(gate)]
    app.include_router(operation_routes(queryable, registry, guard))
    walks = CapacityLimiter(WALKS)
    stores = (key_value_routes, window_routes, session_routes)
    for router in (store_routes(queryable), *(routes(queryable, walks) for routes in stores)):
        app.include_router(router, dependencies=[*guard, Depends(known_parameters)])
    app.include_router(relay_routes(queryable), dependencies=guard)
    _describe(app)
    return PointReads(app, queryable, gate)


def _guard(gate: Gate) -> params.Depends:
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


async def _on_streams_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, StreamsException)
    return problem_answer(problems.problem_of(error))


async def _on_misdirected(request: Request, error: Exception) -> Response:
    assert isinstance(error, Misdirected)
    problem = problems.problem_of(error.error, error.owner)
    return problem_answer(problem, None if error.owner is None else _elsewhere(request, error.owner))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return problem_answer(problems.request_problem(error.status_code, detail))


async def _on_invalid_parameters(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
    return problem_answer(problems.request_problem(400, wrong))


def _elsewhere(request: Request, owner: str) -> str:
    """The same query at another instance."""
    raw: bytes = request.scope.get("raw_path") or quote(request.url.path).encode()
    query: bytes = request.scope["query_string"]
    return owner + raw.decode("ascii") + (f"?{query.decode('ascii')}" if query else "")


class _LastResort:
    """Answers where an endpoint can't: after a defect, its trace going to the log, and at a shutdown."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            # Only a server that stops cancels a request. An answer that has begun is cut off, visibly.
            if not started:
                closing = StateStoreNotAvailableException(
                    "this instance closed before it had the answer; do not retry here, ask another instance"
                )
                await problem_answer(problems.problem_of(closing))(scope, receive, send)
        except CallerLeft:
            _log.debug("query.caller-left", path=scope.get("path"))
        except BrokenOff as error:
            _log.warning("query.broken-off", path=scope.get("path"), reason=str(error))
        except Exception:
            if started:
                raise  # the connection is cut off, so the reader sees that the answer is not whole
            _log.exception("query.failed", path=scope.get("path"))
            await problem_answer(problems.defect_problem())(scope, receive, send)
