"""A collector of OpenTelemetry that takes spans by OTLP over HTTP, and keeps them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """One at an address."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.got: list[ExportTraceServiceRequest] = []

    def spans(self, instance: str | None = None) -> list[Any]:
        """All that came, or what one instance has sent."""
        return [
            span
            for each in tuple(self.got)
            for part in each.resource_spans
            if instance is None or attributes_of(part.resource)["service.instance.id"] == instance
            for scope in part.scope_spans
            for span in scope.spans
        ]


def attributes_of(holder: Any) -> dict[str, Any]:
    """Those of a span or a resource, by name."""
    return {
        each.key: each.value.int_value if each.value.HasField("int_value") else each.value.string_value
        for each in holder.attributes
    }


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportTraceServiceRequest()
            request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
            made.got.append(request)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
