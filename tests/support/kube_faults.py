"""A proxy before the API server that makes requests fail, cuts watches and keeps account of all requests."""

from __future__ import annotations

import asyncio
import itertools
import re
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web
from kube_cluster import Cluster
from kube_process import LOOPBACK, free_port, temporary_folder
from kube_reads import trust

READS = ("get", "head", "options", "watch")
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "host", "content-length"}
_REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
_START = 30.0
_GOODBYE = 45.0  # seconds; asyncio itself waits 30 for the other side's goodbye
_LARGEST_BODY = 16 * 1024**2


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that came through: `watch`, or the HTTP method in lower case; the path; what was answered."""

    verb: str
    path: str
    agent: str
    status: int | None
    """None: the connection was dropped without an answer."""

    @property
    def writes(self) -> bool:
        """Whether it asks for a change."""
        return self.verb not in READS


@dataclass(slots=True)
class Fault:
    """What happens to the next requests that match."""

    status: int | None
    verb: str | None
    path: re.Pattern[str]
    times: int
    carried_out: bool

    def matches(self, verb: str, path: str) -> bool:
        """Whether it has to do with a request."""
        return self.times > 0 and self.verb in (None, verb) and self.path.search(path) is not None


class FaultyApi:
    """The API server seen through the proxy. All methods are safe to call from the test's thread."""

    def __init__(self, cluster: Cluster, loop: asyncio.AbstractEventLoop) -> None:
        self.cluster = cluster
        """As the API server's own, at the proxy's address: give its kubeconfigs to what is tested."""
        self._loop = loop
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._seen: list[Seen] = []
        self._watches: dict[int, tuple[str, asyncio.Transport]] = {}
        self._numbers = itertools.count()

    def fail(
        self, status: int | None, *, verb: str | None = None, path: str = "", times: int = 1, carried_out: bool = False
    ) -> Fault:
        """Answer the next `times` requests with `status` (None: drop the connection); earlier faults come first.

        `verb` is `watch`, `get`, `post`, `put`, `patch` or `delete`; `path` a regular expression that is searched
        for in the path without its query. With `carried_out` the API server does what was asked and only its
        answer is lost. What comes back counts down: its `times` is 0 once all of it has happened.
        """
        fault = Fault(status, verb, re.compile(path), times, carried_out)
        with self._lock:
            self._faults.append(fault)
        return fault

    def heal(self) -> None:
        """No more faults."""
        with self._lock:
            self._faults.clear()

    def cut_watches(self, path: str = "") -> int:
        """Drop the connections of the watches that are open now, and say how many there were."""
        with self._lock:
            open_now = [transport for where, transport in self._watches.values() if re.search(path, where)]
        for transport in open_now:
            self._loop.call_soon_threadsafe(transport.abort)
        return len(open_now)

    def watches(self, path: str = "") -> int:
        """How many watches are open now."""
        with self._lock:
            return sum(1 for where, _ in self._watches.values() if re.search(path, where))

    def seen(self, verb: str | None = None, path: str = "") -> list[Seen]:
        """The requests since the beginning or the last `forget`, oldest first; a watch counts when it opens."""
        with self._lock:
            return [each for each in self._seen if verb in (None, each.verb) and re.search(path, each.path)]

    def writes(self, ignoring: str = r"/leases(/|$)") -> list[Seen]:
        """The requests that asked for a change, without those whose path matches `ignoring` (leader election)."""
        return [each for each in self.seen() if each.writes and not re.search(ignoring, each.path)]

    def forget(self) -> None:
        """Begin counting anew."""
        with self._lock:
            self._seen.clear()

    def _take(self, verb: str, path: str) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                if fault.matches(verb, path):
                    fault.times -= 1
                    return fault
        return None

    def _note(self, request: web.Request, verb: str, status: int | None) -> None:
        with self._lock:
            self._seen.append(Seen(verb, request.path, request.headers.get("User-Agent", ""), status))

    @contextmanager
    def _watching(self, request: web.Request) -> Iterator[None]:
        number = next(self._numbers)
        assert isinstance(request.transport, asyncio.Transport)
        with self._lock:
            self._watches[number] = (request.path, request.transport)
        try:
            yield
        finally:
            with self._lock:
                del self._watches[number]


@contextmanager
def faulty_api(cluster: Cluster) -> Iterator[FaultyApi]:
    """A proxy before `cluster` on the loopback address, for as long as the block lasts."""
    with temporary_folder("proxy") as folder:
        certificate, key = _certificate(folder)
        incoming = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        incoming.load_cert_chain(certificate, key)
        port = free_port()
        started: Future[tuple[FaultyApi, asyncio.Event]] = Future()
        seen_as = cluster.at(f"https://{LOOPBACK}:{port}", certificate)

        def serve() -> None:
            asyncio.run(_serve(cluster, seen_as, incoming, port, started))

        thread = threading.Thread(target=serve, name="faulty-api", daemon=True)
        thread.start()
        api, stop = started.result(_START)
        try:
            yield api
        finally:
            api._loop.call_soon_threadsafe(stop.set)
            thread.join(_START + _GOODBYE)


async def _serve(
    cluster: Cluster,
    seen_as: Cluster,
    incoming: ssl.SSLContext,
    port: int,
    started: Future[tuple[FaultyApi, asyncio.Event]],
) -> None:
    try:
        api, stop = FaultyApi(seen_as, asyncio.get_running_loop()), asyncio.Event()
        async with ClientSession(
            base_url=cluster.url,
            connector=TCPConnector(ssl=trust(cluster.endpoint), limit=0),
            timeout=ClientTimeout(total=None),
            # Bodies go through as they come.
            auto_decompress=False,
            skip_auto_headers=["Accept-Encoding", "Content-Type", "User-Agent"],
        ) as session:

            async def handle(request: web.Request) -> web.StreamResponse:
                return await _handle(api, session, request)

            app = web.Application(client_max_size=_LARGEST_BODY)
            app.router.add_route("*", "/{path:.*}", handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
            await runner.setup()
            try:
                await web.TCPSite(runner, LOOPBACK, port, ssl_context=incoming).start()
                started.set_result((api, stop))
                await stop.wait()
            finally:
                await runner.cleanup()
        await _all_closed()
    except BaseException as failure:
        if started.done():
            raise
        started.set_exception(failure)


async def _all_closed() -> None:
    """TLS connections say goodbye after their `close`; a loop that ends first leaves them to the garbage collector."""
    loop: Any = asyncio.get_running_loop()
    deadline = loop.time() + _GOODBYE
    # Only the loop's own pipe is left then. No public call asks for the transports of a loop.
    while len(loop._selector.get_map()) > 1:
        if loop.time() > deadline:
            raise TimeoutError(f"connections of the proxy are still open: {list(loop._selector.get_map())}")
        await asyncio.sleep(0.01)


async def _handle(api: FaultyApi, session: ClientSession, request: web.Request) -> web.StreamResponse:
    watch = request.query.get("watch") in ("1", "true", "True")
    verb = "watch" if watch else request.method.lower()
    if "Upgrade" in request.headers:
        return _status(501, "this proxy does not carry upgraded connections (exec, port-forward): ask the API server")
    fault = api._take(verb, request.path)
    if fault is not None and not fault.carried_out:
        return _fail(api, request, verb, fault)
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
    try:
        async with session.request(
            request.method, request.rel_url, headers=headers, data=await request.read() or None, allow_redirects=False
        ) as answer:
            if fault is not None:
                return _fail(api, request, verb, fault)
            api._note(request, verb, answer.status)
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
            if not watch:
                return web.Response(status=answer.status, headers=kept, body=await answer.read())
            response = web.StreamResponse(status=answer.status, headers=kept)
            with api._watching(request):
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
            return response
    except (ClientError, ConnectionError) as failure:
        return _status(502, f"the API server behind the proxy did not answer: {failure}")


def _fail(api: FaultyApi, request: web.Request, verb: str, fault: Fault) -> web.Response:
    api._note(request, verb, fault.status)
    if fault.status is None:
        assert isinstance(request.transport, asyncio.Transport)
        request.transport.abort()
        return web.Response(status=500)
    return _status(fault.status, "injected by the test")


def _status(code: int, message: str) -> web.Response:
    """An error in the form in which the API server gives it."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": _REASONS.get(code, ""),
        "message": message,
    }
    return web.json_response(body, status=code, headers={"Retry-After": "1"} if code == 429 else None)


def _certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "proxy.crt", folder / "proxy.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=proxy"]
    names = ["-addext", f"subjectAltName=IP:{LOOPBACK}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *names], check=True, capture_output=True, timeout=_START)
    return certificate, key
