"""A local HTTP server that plays the API server towards one pod, for faults that a real one can't be made to show."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from streams_runtime.kubernetes.pod_status_api import ApiAccess


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch as it came in."""

    path: str
    token: str
    content_type: str
    body: dict[str, Any]

    @property
    def conditions(self) -> dict[str, dict[str, str]]:
        """Its conditions, by the last part of the type's name."""
        return {each["type"].partition("/")[2]: each for each in self.body["status"]["conditions"]}


@dataclass
class PodStatusServer:
    """What came in, and what is answered: `answer(n)` gives status, message and headers for the n-th patch.

    `looks` are the patches that change nothing, which are sent for the pod that is answered with its `annotations`.
    """

    patches: list[Patch] = field(default_factory=list)
    looks: list[Patch] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    answer: Callable[[int], tuple[int, str, dict[str, str]]] = lambda _: (200, "", {})
    silent: threading.Event = field(default_factory=threading.Event)  # set: takes requests, answers none
    url: str = ""

    @property
    def states(self) -> list[str]:
        """The states that the pod has reported, repetitions left out."""
        found: list[str] = []
        for patch in list(self.patches):
            running = patch.conditions.get("Running")
            if running is not None and running["reason"] not in found[-1:]:
                found.append(running["reason"])
        return found


@contextmanager
def pod_status_server(port: int = 0) -> Iterator[PodStatusServer]:
    """Runs one on the loopback address."""
    played = PodStatusServer()
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if played.silent.is_set():
                released.wait()
                self.close_connection = True
                return
            token = self.headers["Authorization"].removeprefix("Bearer ")
            patch = Patch(self.path, token, self.headers["Content-Type"], body)
            (played.patches if "status" in body else played.looks).append(patch)
            status, message, headers = played.answer(len(played.patches))
            pod = {"kind": "Pod", "metadata": {"annotations": played.annotations}}
            data = json.dumps(pod if status < 300 else {"kind": "Status", "message": message}).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    played.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield played
    finally:
        released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def access_to(url: str, folder: Path, token: str = "first") -> ApiAccess:
    """The way to `url` with a token in `folder`; no certificate, since it is no https."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "token").write_text(token)
    return ApiAccess(url, folder / "token", folder / "ca.crt")
