"""Requests to the API server: few verbs, plain JSON, and errors that are named for what to do about them.

ApiError
├── NotThere      it has gone, or is not there yet: reconcile again
├── Conflict      somebody else wrote meanwhile: reconcile again
├── TryLater      the server or the way to it is in trouble: the same again, after `after` seconds
└── Refused       the request itself is wrong or not allowed: somebody has to change something
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson
from kubernetes.aio import config as _config
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.config.incluster_config import SERVICE_HOST_ENV_NAME

from streams_operator.kube.kinds import APPLICATION, Kind
from streams_operator.model import Json
from streams_operator.names import MANAGED_BY

_TIMEOUT = 15.0  # seconds for a request; the server's own limit is 60
_CONNECTIONS = 32  # beside the watches
_PAGE = 100
"""Objects in one answer: a megabyte or so of pods."""
_SERVER_TIMEOUT = 300  # whole seconds until the server ends a watch, and the next one takes over
_SILENCE = 75.0  # seconds without even a bookmark, which come every minute, after which a stream is dead
_CONNECT = 10.0
_NEW = "1"
"""As the resourceVersion of an apply: no object that exists has it, so that only a new one is made."""
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


Requested = Callable[[str, str, int | None, float], None]
"""Hears of each request: its verb, the resource's plural, the answer's status (None: there was none), its seconds."""


class ApiError(Exception):
    """The API server did not do what was asked; the text says what was asked and why not."""


class NotThere(ApiError):
    """The object is not there (404), or has another uid than the one to be deleted."""


class Conflict(ApiError):
    """The object was changed since it was read, or exists already (409)."""


class TryLater(ApiError):
    """Too many requests, a server error, or no answer. `after`: seconds the server asked for, if it did."""

    def __init__(self, text: str, after: float | None = None) -> None:
        super().__init__(text)
        self.after = after


class Refused(ApiError):
    """The server does not accept the request, and would not the next time either."""


async def connect(environment: Mapping[str, str], allowed: Callable[[], bool] = lambda: True, watches: int = 0) -> Api:
    """The API server of the pod that this runs in; outside of a cluster the one of KUBECONFIG. `watches` is how many
    streams will be open at once.

    Raises kubernetes.config.ConfigException: neither is there, or it can't be read.
    """
    library: Any = _config  # without type information, as the response below
    configuration = Configuration()
    if environment.get(SERVICE_HOST_ENV_NAME) and not environment.get("KUBECONFIG"):
        library.load_incluster_config(client_configuration=configuration)
    else:
        await library.load_kube_config(config_file=environment.get("KUBECONFIG"), client_configuration=configuration)
    configuration.connection_pool_maxsize = _CONNECTIONS + watches
    configuration.retries = False
    # Otherwise aiohttp searches for proxies and a netrc file at each request, in a thread.
    settings: Any = configuration
    settings.client_session_kwargs = {"trust_env": False}
    settings.proxy = settings.proxy or proxy_for(settings.host)
    return Api(ApiClient(configuration), allowed)


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this address: HTTPS_PROXY, HTTP_PROXY, but not for those of NO_PROXY."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)


class Api:
    """All requests of this process to the API server. Every method may raise every ApiError.

    Nothing is tried again in here: the next round may want something else.
    """

    def __init__(self, client: ApiClient, allowed: Callable[[], bool] = lambda: True) -> None:
        """`allowed`: whether this process may write; asked right before each write but those of `election`."""
        self._client = client
        self._allowed = allowed
        self.requested: Requested = lambda *_: None

    async def close(self) -> None:
        """End the connections."""
        client: Any = self._client
        await client.close()

    async def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """One object."""
        return await self._ask("GET", kind.path(namespace, name))

    async def list(self, kind: Kind, namespace: str, labels: str) -> tuple[Sequence[Json], str]:
        """The objects by label selector as they are now, without their apiVersion and kind, and the list's version."""
        answer = await self._ask("GET", kind.path(namespace), {"labelSelector": labels})
        return answer.get("items") or (), str(answer["metadata"]["resourceVersion"])

    async def pages(
        self, kind: Kind, namespace: str | None, labels: str, *, metadata_only: bool = False
    ) -> AsyncIterator[tuple[Sequence[Json], str]]:
        """All objects of a namespace, or of the cluster, page by page, each with the version of the whole list.

        NotThere: the list took so long that the server does not know its version any more.
        """
        query = {"limit": str(_PAGE)} | ({"labelSelector": labels} if labels else {})
        accept = _METADATA_LIST if metadata_only else "application/json"
        while True:
            answer = await self._ask("GET", kind.path(namespace), query, accept=accept)
            metadata = answer["metadata"]
            yield answer.get("items") or (), str(metadata["resourceVersion"])
            if not metadata.get("continue"):
                return
            query["continue"] = metadata["continue"]

    async def watch(
        self, kind: Kind, namespace: str | None, labels: str, since: str, *, metadata_only: bool
    ) -> AsyncIterator[Json]:
        """Each change after the version `since` as {type, object}, until the server ends the stream.

        NotThere: the server does not know that version any more; list again. TryLater: also when the stream is silent.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "labelSelector": labels,
            "resourceVersion": since,
            "timeoutSeconds": str(_SERVER_TIMEOUT),
        }
        asked = f"WATCH {kind.path(namespace)}"
        timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT, sock_read=_SILENCE)
        accept = _METADATA if metadata_only else "application/json"
        try:
            response = await self._send("GET", kind.path(namespace), query, None, accept, "application/json", timeout)
            async with response.response as stream:
                if stream.status >= HTTPStatus.BAD_REQUEST:
                    raise _error(asked, stream.status, stream.headers.get("Retry-After"), await stream.read())
                async for line in stream.content:
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        raise _error(
                            asked, int(event["object"].get("code") or 500), None, orjson.dumps(event["object"])
                        )
                    yield event
        except (aiohttp.ClientError, TimeoutError, ssl.SSLError, OSError, ValueError) as error:
            raise TryLater(f"{asked}: the stream broke off ({str(error) or type(error).__name__})") from error

    async def create(self, kind: Kind, obj: Json, *, election: bool = False) -> Json:
        """A new object. Conflict: there is one of this name."""
        path = kind.path(obj["metadata"]["namespace"])
        return await self._write("POST", path, obj, {"fieldManager": MANAGED_BY}, election=election)

    async def apply(self, kind: Kind, obj: Json, *, new: bool = False) -> Json:
        """Server-side apply with force: the fields given become as given, whoever set them before.

        `new`: only if there is no object of this name. Conflict: there is one.
        """
        if new:
            obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": _NEW}}
        path = kind.path(obj["metadata"]["namespace"], obj["metadata"]["name"])
        return await self._write("PATCH", path, obj, {"fieldManager": MANAGED_BY, "force": "true"}, _APPLY)

    async def replace(self, kind: Kind, obj: Json, subresource: str | None = None, *, election: bool = False) -> Json:
        """The whole object, or one subresource of it. Conflict: `obj` is not the newest version."""
        path = kind.path(obj["metadata"]["namespace"], obj["metadata"]["name"], subresource)
        return await self._write("PUT", path, obj, {"fieldManager": MANAGED_BY}, election=election)

    async def merge(self, kind: Kind, namespace: str, name: str, change: Json) -> Json:
        """A merge patch. Conflict: `change` names a resourceVersion that is not the newest."""
        return await self._write("PATCH", kind.path(namespace, name), change, {"fieldManager": MANAGED_BY}, _MERGE)

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str, *, force: bool = False) -> None:
        """Delete exactly the object with this uid; what depends on it goes in the background. `force`: a pod without
        waiting for its node.

        NotThere: it has gone, or another one has its name.
        """
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
            **({"gracePeriodSeconds": 0} if force else {}),
        }
        try:
            await self._write("DELETE", kind.path(namespace, name), options)
        except Conflict as error:
            raise NotThere(str(error)) from error

    async def _write(
        self,
        method: str,
        path: str,
        body: Json,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
        *,
        election: bool = False,
    ) -> Json:
        if not election and not self._allowed():
            raise TryLater(f"{method} {path} was not sent: another replica may be the leader by now")
        return await self._ask(method, path, query, body, content=content)

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        *,
        accept: str = "application/json",
        content: str = "application/json",
    ) -> Json:
        asked, began = f"{method} {path}", time.monotonic()
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
        status: int | None = None
        try:
            async with asyncio.timeout(_TIMEOUT):
                response = await self._send(method, path, query, body, accept, content, timeout)
                data = await response.read()
                status = response.status
        except (aiohttp.ClientError, TimeoutError, ssl.SSLError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise TryLater(f"{asked}: no answer from the API server ({reason})") from error
        finally:
            self.requested(method, resource_of(path), status, time.monotonic() - began)
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise _error(asked, response.status, response.getheader("Retry-After"), data)
        try:
            return cast(Json, orjson.loads(data))
        except orjson.JSONDecodeError as error:
            raise TryLater(f"{asked}: the answer is not JSON ({error}); something stands before the server") from error

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Json | None,
        accept: str,
        content: str,
        timeout: aiohttp.ClientTimeout,
    ) -> Any:
        headers = {"Accept": accept, "Content-Type": content}
        _, url, headers, _, _ = await self._client.param_serialize(
            method, path, header_params=headers, auth_settings=["BearerToken"]
        )
        if query:
            url += f"?{urlencode(query)}"
        return await self._client.call_api(method, url, headers, body, _request_timeout=timeout)


def resource_of(path: str) -> str:
    """The plural in a path of the API server, such as `pods`; no name of a namespace or an object is taken for it."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    rest = rest[2:] if len(rest) > 2 and rest[0] == "namespaces" else rest
    return rest[0] if rest else "other"


def _error(asked: str, status: int, retry_after: str | None, data: bytes) -> ApiError:
    text = f"{asked}: {_message(data)} ({status})"
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return NotThere(text)
    if status == HTTPStatus.CONFLICT:
        return Conflict(text)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in (
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.REQUEST_TIMEOUT,
        # The token is read anew every minute; until then a new one may be refused.
        HTTPStatus.UNAUTHORIZED,
    ):
        return TryLater(text, float(retry_after) if retry_after and retry_after.isdigit() else None)
    return Refused(text)


def _message(data: bytes) -> str:
    try:
        answer: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        answer = None
    if isinstance(answer, dict) and isinstance(answer.get("message"), str):
        return cast(str, answer["message"])
    return data[:200].decode(errors="replace") or "no reason given"


def identity(resource: Json) -> Mapping[str, str]:
    """What events say which resource they are about."""
    metadata = resource["metadata"]
    return {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.name,
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }
