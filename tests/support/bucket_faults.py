"""A proxy between clients and an object store, in which single requests fail as networks and servers let them.

It passes requests on as they came, with their Host, over which a client's signature goes.
"""

from __future__ import annotations

import http.client
import re
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

_HOST = "127.0.0.1"
_CHUNK = 64 * 1024
_STORE = 60.0  # seconds for the store's own answer
_BUSY = b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'


@dataclass
class Fault:
    """What becomes of requests whose method and path fit; `times` of them, or all (None).

    kind: `slow`, `busy`, `cut`, `cut_upload`, `wrong_bytes`, `hang` or `lost_answer`; see the methods of FaultProxy.
    """

    kind: str
    methods: frozenset[str]
    path: re.Pattern[str]
    times: int | None = 1
    seconds: float = 0.0
    met: int = 0
    """How many requests it has had."""
    done: threading.Event = field(default_factory=threading.Event)
    """Set with the first."""

    def wants(self, method: str, path: str) -> bool:
        """Whether this request is one of them."""
        return (self.times is None or self.met < self.times) and method in self.methods and bool(self.path.search(path))


@dataclass(frozen=True, slots=True)
class Request:
    """A request that came, and what it met: a fault's kind, or nothing."""

    method: str
    path: str
    fault: str = ""


class FaultProxy:
    """The proxy before the store at a port of this machine; use it in `with`. Its methods may be called anywhere."""

    def __init__(self, store: int) -> None:
        self.requests: list[Request] = []
        self.store = store
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._over = threading.Event()  # set: what hangs or is slow is let go
        self._server = _Server((_HOST, 0), type("Handler", (_Handler,), {"proxy": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="fault-proxy")

    @property
    def port(self) -> int:
        """Where clients find it."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def clear(self) -> None:
        """All faults are over, what hangs is cut, and no request has been seen."""
        with self._lock:
            self._faults.clear()
            self.requests.clear()
            over, self._over = self._over, threading.Event()
        over.set()

    def slow(self, seconds: float, methods: str = "GET PUT", path: str = "", times: int | None = 1) -> Fault:
        """The store's answer comes so much later."""
        return self._add("slow", methods, path, times, seconds)

    def busy(self, methods: str = "GET PUT", path: str = "", times: int | None = 1) -> Fault:
        """503 with S3's SlowDown; the store never hears of it."""
        return self._add("busy", methods, path, times)

    def cut(self, methods: str = "GET", path: str = "", times: int | None = 1) -> Fault:
        """The connection ends in the middle of the answer's body."""
        return self._add("cut", methods, path, times)

    def cut_upload(self, methods: str = "PUT", path: str = "", times: int | None = 1) -> Fault:
        """The connection ends in the middle of the request's body; the store gets the first half, and no more."""
        return self._add("cut_upload", methods, path, times)

    def wrong_bytes(self, methods: str = "GET", path: str = "", times: int | None = 1) -> Fault:
        """The answer's body is as long as it should be, with its middle byte inverted."""
        return self._add("wrong_bytes", methods, path, times)

    def hang(self, methods: str = "GET PUT", path: str = "", times: int | None = 1) -> Fault:
        """No answer comes, and the store never hears of it, until `clear` cuts the connection."""
        return self._add("hang", methods, path, times)

    def lost_answer(self, methods: str = "PUT", path: str = "", times: int | None = 1) -> Fault:
        """The store does it, and its answer does not arrive."""
        return self._add("lost_answer", methods, path, times)

    def wait(self, seconds: float | None) -> None:
        """Let the time pass, or all until `clear`."""
        self._over.wait(seconds)

    def _add(self, kind: str, methods: str, path: str, times: int | None, seconds: float = 0.0) -> Fault:
        fault = Fault(kind, frozenset(methods.split()), re.compile(path), times, seconds)
        with self._lock:
            self._faults.append(fault)
        return fault

    def meet(self, method: str, path: str) -> Fault | None:
        """The fault that this request meets: of several the one that was asked for first."""
        with self._lock:
            found = next((each for each in self._faults if each.wants(method, path)), None)
            self.requests.append(Request(method, path, found.kind if found is not None else ""))
            if found is not None:
                found.met += 1
                found.done.set()
            return found


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # one that hangs is not waited for
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is nobody's mistake."""


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    proxy: FaultProxy

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def _handle(self) -> None:
        fault = self.proxy.meet(self.command, self.path)
        kind = fault.kind if fault is not None else ""
        if kind == "hang":
            self.proxy.wait(None)
            self._cut()
            return
        if kind == "cut_upload":
            self._send_half()
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if kind == "busy":
            self._answer(503, [("Content-Type", "application/xml")], _BUSY)
            return
        status, headers, content = self._ask(body)
        if kind == "slow" and fault is not None:
            self.proxy.wait(fault.seconds)
        elif kind == "lost_answer":
            self._cut()
            return
        elif kind == "wrong_bytes" and content:
            middle = len(content) // 2
            content = content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]
        self._answer(status, headers, content, half=kind == "cut")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 - http.server's names

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(_HOST, self.proxy.store, timeout=_STORE)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            found = connection.getresponse()
            own = ("connection", "transfer-encoding", "content-length", "keep-alive")
            headers = [(name, value) for name, value in found.getheaders() if name.lower() not in own]
            content = found.read()
            if self.command == "HEAD" and (length := found.getheader("Content-Length")) is not None:
                headers.append(("Content-Length", length))
            return found.status, headers, content
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, half: bool = False) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD" and status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if half else content)
        if half:
            self.wfile.flush()
            self._cut()

    def _send_half(self) -> None:
        """Half of what the client sends reaches the store, over a connection that then ends."""
        length = int(self.headers.get("Content-Length") or 0)
        half = self.rfile.read(length // 2)
        with suppress(OSError), socket.create_connection((_HOST, self.proxy.store), timeout=_STORE) as store:
            headers = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
            store.sendall(f"{self.command} {self.path} HTTP/1.1\r\n{headers}\r\n".encode("latin-1") + half)
        self._cut()

    def _cut(self) -> None:
        """The client sees its connection end, without another word."""
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
