"""What stands before a schema registry of tests: it hears all questions, asks for a login, and goes away."""

from __future__ import annotations

import base64
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

_HOST = "127.0.0.1"


@dataclass
class RegistryFront(ABC):
    """A registry as clients see it at its `url`, and as tests do: `user_info` is what it asks for; `away`: 503."""

    user_info: str | None = None
    away: bool = False
    asked: list[str] = field(default_factory=list)
    """Method and path of every question."""
    url: str = ""

    @abstractmethod
    def answered(self, method: str, target: str, body: bytes | None) -> tuple[int, bytes]:
        """Status and body of the answer to a question that came to `target`, a path with what is behind its `?`."""

    @abstractmethod
    def put(self, subject: str, text: str, kind: str = "AVRO") -> int:
        """Register a schema past all that clients meet; its id."""

    @abstractmethod
    def ids(self, subject: str) -> list[int]:
        """The ids of a subject's schemas, in the order of their versions."""

    @abstractmethod
    def schema(self, id: int) -> tuple[str, str]:
        """Type and text of the schema of an id."""

    @abstractmethod
    def accept_all(self) -> None:
        """From here on every schema may follow every other, as with the compatibility NONE."""

    def _refusal(self, login: str | None) -> tuple[int, bytes] | None:
        if self.away:
            return 503, refusal(50301, "the store is not ready")
        wanted = self.user_info and "Basic " + base64.b64encode(self.user_info.encode()).decode()
        return (401, refusal(401, "Unauthorized")) if wanted and login != wanted else None

    def answer(self, method: str, target: str, body: bytes | None, login: str | None) -> tuple[int, bytes]:
        """The same as `answered`, once the registry is there and has seen the login."""
        self.asked.append(f"{method} {target}")
        return self._refusal(login) or self.answered(method, target, body)


AnyRegistry = TypeVar("AnyRegistry", bound=RegistryFront)


def refusal(code: int, message: str) -> bytes:
    """The body of an error answer."""
    return json.dumps({"error_code": code, "message": message}).encode()


@contextmanager
def serving(registry: AnyRegistry) -> Iterator[AnyRegistry]:
    """The registry at its `url`, during the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes | None) -> None:
            status, data = registry.answer(self.command, self.path, body, self.headers.get("Authorization"))
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((_HOST, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        registry.url = f"http://{_HOST}:{server.server_port}"
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
