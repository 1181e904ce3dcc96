"""Asks an ASGI application directly: no socket, no client library, so that thousands of requests take seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import orjson


@dataclass(frozen=True)
class Answer:
    """Status, headers by their names in small letters, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as one document."""
        return orjson.loads(self.body)

    def lines(self) -> list[Any]:
        """The body as one document a line."""
        return [orjson.loads(line) for line in self.body.splitlines()]


async def get(app: Any, target: str, headers: Mapping[str, str] | None = None) -> Answer:
    """GET of `target`, path and query as they stand in a URL."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        "server": ("test", 80),
        "client": ("test", 1),
        "root_path": "",
    }
    sent: list[Any] = []
    came: list[bool] = []

    async def receive() -> Any:
        if came:
            await asyncio.Event().wait()  # the caller stays until it has the answer
        came.append(True)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *parts = sent
    said = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], said, b"".join(part.get("body", b"") for part in parts))
