"""The operator's own HTTP servers: probes and metrics."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Check = Callable[[], str | None]
"""What is wrong; None: nothing."""


def probes(alive: Sequence[Check], ready: Sequence[Check]) -> web.Application:
    """`/healthz` and `/readyz`: 200, or 503 with what is wrong, a line each.

    An answer shows that the event loop runs.
    """
    app = web.Application()
    app.router.add_get("/healthz", _answer(alive))
    app.router.add_get("/readyz", _answer([*alive, *ready]))
    return app


def metrics(registry: CollectorRegistry) -> web.Application:
    """`/metrics`."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.router.add_get("/metrics", answer)
    return app


async def serve(stack: AsyncExitStack, app: web.Application, port: int, tls: ssl.SSLContext | None = None) -> int:
    """Serve `app` on all addresses until `stack` is closed; returns the port, which is another one than 0.

    Raises OSError: the port is taken.
    """
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=2.0)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, None, port, ssl_context=tls).start()
    # A free port may be another one for each family of addresses; that of IPv4 has two parts.
    return int(min(runner.addresses, key=len)[1])


def _answer(checks: Sequence[Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        wrong = [trouble for check in checks if (trouble := check()) is not None]
        return web.Response(text="\n".join(wrong) or "ok", status=503 if wrong else 200)

    return answer
