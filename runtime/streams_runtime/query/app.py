"""The HTTP endpoints of an instance."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote_to_bytes

import orjson
import structlog
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams_runtime.errors import (
    InvalidStateStorePartitionException,
    StateStoreNotAvailableException,
    StreamsException,
)
from streams_runtime.kafka.partitioner import partition_for
from streams_runtime.query import liveness, problems
from streams_runtime.query.handles import check_name, check_store, open_composite
from streams_runtime.query.problems import InvalidQueryException, Problem
from streams_runtime.query.records import RecordLines, RecordResponse
from streams_runtime.query.views import Queryable, StoreCodec
from streams_runtime.query.wire import to_json
from streams_runtime.states import ClientState

T = TypeVar("T")

Partitions = Annotated[list[int] | None, Query(description="exactly these; default: every local one")]
KeyBytes = Annotated[bool, Query(alias="keyBytes", description="add the key's bytes in base64")]

_log = structlog.get_logger(__name__)


class _TextConvertor(Convertor[str]):
    """The rest of the path, whatever it holds; Starlette's own `path` stops at a line break."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("text", _TextConvertor())


def create_app(queryable: Queryable, registry: CollectorRegistry) -> FastAPI:
    """The application that answers for `queryable`; `registry` is what `/metrics` shows.

    Stores are read in worker threads. Health, readiness, state and metrics never wait for them.
    """
    app = FastAPI(title="Streams queries", docs_url=None, redoc_url=None, dependencies=[Depends(_readable_url)])
    app.add_middleware(_LastResort)
    app.add_exception_handler(StreamsException, _on_streams_exception)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_invalid_parameters)
    app.include_router(_operations(queryable, registry))
    app.include_router(_stores(queryable))
    return app


def _operations(queryable: Queryable, registry: CollectorRegistry) -> APIRouter:
    """Health, readiness, metrics and state."""
    router = APIRouter()
    threads = CapacityLimiter(2)  # of their own, so that store reads can't use up the threads that these need

    async def in_thread(function: Callable[[], T]) -> T:
        return await to_thread.run_sync(function, limiter=threads)

    @router.get("/healthz")
    async def healthz() -> Response:
        stuck = queryable.stuck_threads()
        return _json(liveness.account(stuck, time.time()), 503 if stuck else 200)

    @router.get("/readyz")
    async def readyz() -> Response:
        state = queryable.state
        return _json({"state": state}, 200 if state is ClientState.RUNNING else 503)

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(
            await in_thread(lambda: generate_latest(registry)), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    @router.get("/state")
    async def state() -> Response:
        return _json(await in_thread(queryable.describe))

    return router


def _stores(queryable: Queryable) -> APIRouter:
    """The stores: who has them, and what is in them."""
    router = APIRouter(prefix="/stores")

    @router.get("")
    def stores() -> Response:
        names = sorted(queryable.store_names())
        return _json({"stores": [{"name": name, "partitions": sorted(queryable.views(name))} for name in names]})

    @router.get("/{store}/owners")
    def owners(store: str) -> Response:
        check_name(queryable, store)
        found = sorted(queryable.owners(store).items())
        rows = [{"partition": number, "instance": owner.instance, "url": owner.url} for number, owner in found]
        return _json({"store": store, "partitions": queryable.partition_count(store), "owners": rows})

    @router.get("/{store}/keys/{key:text}")
    def get_key(store: str, key: str) -> Response:
        return _answer_key(queryable, store, key)

    @router.get("/{store}/range")
    def get_range(
        store: str,
        from_key: Annotated[str | None, Query(alias="from")] = None,
        to_key: Annotated[str | None, Query(alias="to")] = None,
        partition: Partitions = None,
        key_bytes: KeyBytes = False,
    ) -> Response:
        return _answer_range(queryable, store, (from_key, to_key), partition, key_bytes)

    @router.get("/{store}/all")
    def get_all(store: str, partition: Partitions = None, key_bytes: KeyBytes = False) -> Response:
        return _answer_range(queryable, store, (None, None), partition, key_bytes)

    @router.get("/{store}/count")
    def count(store: str, partition: Partitions = None) -> Response:
        return _json({"count": open_composite(queryable, store, only=partition).count()})

    return router


def _answer_key(queryable: Queryable, name: str, text: str) -> Response:
    check_store(queryable, name)
    codec = queryable.codec(name)
    key, data = _parse_key(codec, name, text)
    partition = partition_for(data, queryable.partition_count(name))
    try:
        value = open_composite(queryable, name, only=(partition,)).get(data)
    except InvalidStateStorePartitionException as error:
        return _problem(problems.problem_of(error, _other_owner(queryable, name, partition)))
    return _json({"key": key, "value": None if value is None else codec.decode_value(value)})


def _answer_range(
    queryable: Queryable,
    name: str,
    bounds: tuple[str | None, str | None],
    partitions: list[int] | None,
    key_bytes: bool,
) -> Response:
    store = open_composite(queryable, name, only=partitions)
    codec = queryable.codec(name)
    start, end = (None if text is None else _parse_key(codec, name, text)[1] for text in bounds)
    return RecordResponse(RecordLines(store.scan(start, end), codec, key_bytes))


def _parse_key(codec: StoreCodec, store: str, text: str) -> tuple[object, bytes]:
    try:
        key = codec.key.parse(text)
        return key, codec.key.encode(key)
    except ValueError as error:
        raise InvalidQueryException(f"{text!r} can't be a key of store {store!r}: {error}") from error


def _other_owner(queryable: Queryable, store: str, partition: int) -> str | None:
    """The URL of the instance that has the partition; None where nobody knows, or news is old."""
    owner = queryable.owners(store).get(partition)
    return None if owner is None or owner.url == queryable.url else owner.url


async def _readable_url(request: Request) -> None:
    """Refuse percent escapes that are not UTF-8: decoding would silently ask for another key."""
    try:
        unquote_to_bytes(request.scope.get("raw_path", b"")).decode()
        unquote_to_bytes(request.scope["query_string"]).decode()
    except UnicodeDecodeError:
        raise InvalidQueryException(
            "the URL has percent escapes that are not UTF-8; write bytes keys in base64, all others in UTF-8"
        ) from None


async def _on_streams_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, StreamsException)
    return _problem(problems.problem_of(error))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return _problem(problems.request_problem(error.status_code, detail))


async def _on_invalid_parameters(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
    return _problem(problems.request_problem(400, wrong))


def _json(content: Mapping[str, Any], status: int = 200) -> Response:
    return Response(to_json(content), status, media_type="application/json")


def _problem(problem: Problem) -> Response:
    after = problem.kind.retry_after
    headers = None if after is None else {"Retry-After": str(after)}
    return Response(
        orjson.dumps(problem.document()), problem.kind.status, headers=headers, media_type=problems.MEDIA_TYPE
    )


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
                await _problem(problems.problem_of(closing))(scope, receive, send)
        except Exception:
            if started:
                raise  # the connection is cut off, so the reader sees that the answer is not whole
            _log.exception("query.failed", path=scope.get("path"))
            await _problem(problems.defect_problem())(scope, receive, send)
