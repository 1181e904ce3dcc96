"""Queries that one instance passes on to another, for callers who reach only one (kubectl port-forward, an ingress)."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Annotated, Final
from urllib.parse import urlencode, urlsplit

import httpx
from anyio import to_thread
from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import StreamingResponse

from streams_runtime.errors import NotSupportedException
from streams_runtime.query.openapi.openapi_document import RELAYED
from streams_runtime.query.server.caller_gone import while_connected
from streams_runtime.query.server.http_answers import BrokenOff
from streams_runtime.query.server.url_parameters import StoreName, check_escapes
from streams_runtime.query.stores.store_target import owners_of
from streams_runtime.query.stores.views import Queryable
from streams_runtime.query.wire.problems import InstanceNotReachableException, InvalidQueryException
from streams_runtime.query.wire.relay import RELAY, relayed_path

_TIMEOUT: Final = httpx.Timeout(60.0, connect=2.0)  # a count may walk over a whole store
_PASSED_ON: Final = ("Authorization", "Accept")
_PASSED_BACK: Final = ("Content-Type", "Retry-After", "Location", "WWW-Authenticate")
_PLAIN: Final = "http://"

Rest = Annotated[str, Path(description="The rest of the endpoint's path, with its parameters.")]
Address = Annotated[str, Path(description="host:port of an instance that has a partition of the store.")]


def relay_routes(queryable: Queryable) -> APIRouter:
    """`/relay/{address}/stores/{store}/…`: what that instance answers to the rest of the path.

    It reaches only instances of this application that have a partition of the store, and only the endpoints of that
    store, so that nobody reaches anything else by it. The caller's token goes on: `owners` names no address that a
    member of the group could have made up.
    """
    router = APIRouter(prefix=RELAY, tags=["stores"])

    @router.get(
        "/{address}/stores/{store}/{rest:text}",
        dependencies=[Depends(check_escapes)],
        responses=RELAYED,
        summary="The same query, answered by another instance",
    )
    async def relay(request: Request, address: Address, store: StoreName, rest: Rest) -> Response:
        path = relayed_path(store, rest)
        if path is None:
            raise InvalidQueryException(
                f"{rest!r} is no endpoint of a store; only those below /stores/STORE/ are relayed, see /docs"
            )
        # In a thread: it may ask the brokers, which takes a moment.
        owners = await to_thread.run_sync(owners_of, queryable, store)
        url = next((each.url for each in owners.values() if each.url.partition("://")[2] == address), None)
        if url is None:
            raise InstanceNotReachableException(
                f"no instance at {address} has a partition of store {store!r} by what the group knows; look for its"
                " owners again"
            )
        query = urlencode(request.query_params.multi_items())
        rest_of_url = path + (f"?{query}" if query else "")
        return await while_connected(request, lambda: relayed_answer(url, rest_of_url, request))

    return router


async def relayed_answer(origin: str, rest: str, request: Request) -> Response:
    """What the instance at `origin` answers to `rest`, path and query, asked with the caller's token.

    It is passed on while it comes in; one that breaks off breaks off here too.

    Raises:
        NotSupportedException: the instance answers by TLS; ask it directly.
        InstanceNotReachableException: it does not answer.
    """
    if not origin.startswith(_PLAIN):
        raise NotSupportedException(
            f"queries are not relayed to instances with TLS, such as {origin}, yet; ask that instance itself"
        )
    url = origin + rest
    async with AsyncExitStack() as opened:
        # No certificates are read: it is HTTP. No proxy: instances are near.
        client = httpx.AsyncClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False, timeout=_TIMEOUT)
        await opened.enter_async_context(client)
        headers = {name: value for name in _PASSED_ON if (value := request.headers.get(name))}
        try:
            answer = await opened.enter_async_context(client.stream("GET", url, headers=headers))
        except httpx.TransportError as error:
            raise InstanceNotReachableException(
                f"the instance at {_origin(url)} does not answer ({error}); it may be gone"
            ) from None
        connection = opened.pop_all()
    passed = {name: value for name in _PASSED_BACK if (value := answer.headers.get(name))}
    return StreamingResponse(_body(answer, connection), answer.status_code, passed)


async def _body(answer: httpx.Response, connection: AsyncExitStack) -> AsyncIterator[bytes]:
    async with connection:
        try:
            async for part in answer.aiter_bytes():
                yield part
        except httpx.TransportError as error:
            raise BrokenOff(f"the instance at {_origin(str(answer.url))} broke off: {error}") from error


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
