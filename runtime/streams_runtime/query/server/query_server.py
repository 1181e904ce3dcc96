"""The HTTP server of an instance, on a thread of its own."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from typing import Final

import structlog
import uvicorn

from streams_runtime.errors import EnvironmentException, IllegalStateException
from streams_runtime.query.metrics.instance_metrics import create_registry
from streams_runtime.query.server.access import OPEN, QueryGuard
from streams_runtime.query.server.http_app import create_app
from streams_runtime.query.server.tls import Certificate
from streams_runtime.query.stores.views import Inspectable

START_SECONDS: Final = 10.0
GRACE_SECONDS: Final = 3  # for running answers at a stop; longer ones are cut off
_THREAD_END_SECONDS: Final = 2.0  # for the thread to end after that
_RENEW_SECONDS: Final = 5.0  # between two checks of the certificate's files

_log = structlog.get_logger(__name__)


class QueryServer:
    """Answers queries for `queryable` at `host`:`port`; port 0 takes a free one. Starts once, stops once.

    `guard` says who may ask, and whether the connection is encrypted.
    """

    def __init__(
        self, queryable: Inspectable, host: str, port: int, grace: int = GRACE_SECONDS, guard: QueryGuard = OPEN
    ) -> None:
        self._host = host
        self._port = port
        self._grace = grace
        self._tls = guard.tls
        self._app = create_app(queryable, create_registry(queryable.describe, queryable.measure), guard.gate)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> int:
        """Bind, start to answer, and return the port.

        Raises:
            EnvironmentException: the address can't be bound; free it or choose another.
            ConfigException: the certificate can't be used; correct its files.
            IllegalStateException: the server was started before.
        """
        if self._server is not None:
            raise IllegalStateException("the query server was started before; make another one")
        certificate = None if self._tls is None else Certificate(self._tls)
        listener = self._bind()
        config = uvicorn.Config(
            self._app,
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=self._grace,
        )
        self._server = server = _Server(config, certificate)
        self._thread = threading.Thread(target=server.serve_on, args=(listener,), name="queries", daemon=True)
        self._thread.start()
        if not server.decided.wait(START_SECONDS) or not server.started:
            listener.close()
            raise EnvironmentException(
                f"no query server at {self._host}:{self._port} after {START_SECONDS:g} s; see its log"
            )
        port: int = listener.getsockname()[1]
        return port

    def stop(self) -> None:
        """Take no more requests, let running answers end, cut off the longest ones. May be called again.

        Returns within the grace and two seconds more. A store call that lasts longer keeps its worker thread;
        closing the store ends both.
        """
        server, thread = self._server, self._thread
        if server is None or thread is None:
            return
        server.should_exit = True
        thread.join(self._grace + _THREAD_END_SECONDS)
        if thread.is_alive():
            _log.warning("query_server.still_busy", host=self._host, seconds=self._grace + _THREAD_END_SECONDS)

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listener = socket.create_server((self._host, self._port), family=family)
        except OSError as error:
            reason = str(error) if error.errno is None else os.strerror(error.errno)
            raise EnvironmentException(
                f"the query server can't listen at {self._host}:{self._port}: {reason}; free the port or choose another"
            ) from error
        # asyncio does not set it on connections of a socket that was made elsewhere; each answer, being two
        # writes, would then wait for the reader's delayed acknowledgement: 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener


class _Server(uvicorn.Server):
    """A uvicorn server that sets `decided` once it listens, or has failed to, and that renews its certificate."""

    def __init__(self, config: uvicorn.Config, certificate: Certificate | None) -> None:
        super().__init__(config)
        self.decided = threading.Event()
        self._certificate = certificate
        self._renewed_at = time.monotonic()
        if certificate is not None:
            config.load()
            config.ssl = certificate.context

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.decided.set()

    async def on_tick(self, counter: int) -> bool:
        if self._certificate is not None and time.monotonic() - self._renewed_at >= _RENEW_SECONDS:
            self._renewed_at = time.monotonic()
            self._certificate.renew()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        # What is left was cut off just now: let it say so, then close what a slow reader keeps open.
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_THREAD_END_SECONDS / 2)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)

    def serve_on(self, listener: socket.socket) -> None:
        try:
            self.run([listener])
        finally:
            listener.close()
            self.decided.set()
