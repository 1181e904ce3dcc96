"""A schema registry for tests: the HTTP API of Confluent's, as far as Avro and Protobuf go, over a real socket.

Ids are global and count from 1; a schema has one id under all subjects, versions count from 1 in each subject.
Registering checks compatibility: by Avro's own rules, for Protobuf by this project's. Errors have Confluent's codes.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import avro.schema
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.errors import AvroException
from proto_subjects import descriptor_of, follows, serialized_form


class Refused(Exception):
    """An error answer."""

    def __init__(self, status: int, code: int, message: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(message)


@dataclass
class Registry:
    """What a registry holds. `user_info` is what it asks for; `away`: it answers 503."""

    user_info: str | None = None
    compatibility: str = "BACKWARD"
    away: bool = False
    schemas: list[tuple[str, str]] = field(default_factory=list)
    """Type and text of each id, from 1 on."""
    subjects: dict[str, list[int]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Method and path of every question."""
    url: str = ""

    def put(self, subject: str, text: str, kind: str = "AVRO") -> int:
        """Register without a question of compatibility; the id."""
        text = text if kind != "AVRO" else json.dumps(json.loads(text), separators=(",", ":"))
        if (kind, text) not in self.schemas:
            self.schemas.append((kind, text))
        number = self.schemas.index((kind, text)) + 1
        if number not in self.subjects.setdefault(subject, []):
            self.subjects[subject].append(number)
        return number

    def answer(self, method: str, path: list[str], body: Any, form: str = "") -> Any:
        """The body of the answer to a question; `form` is its `format=`."""
        match method, path:
            case "GET", ["subjects"]:
                return sorted(self.subjects)
            case "GET", ["subjects", subject, "versions"]:
                return list(range(1, len(self._ids(subject)) + 1))
            case "GET", ["subjects", subject, "versions", version]:
                return self._version(subject, version)
            case "GET", ["schemas", "ids", number]:
                return self._by_id(int(number), form)
        return self._other(method, path, body)

    def _other(self, method: str, path: list[str], body: Any) -> Any:
        match method, path:
            case "POST", ["subjects", subject, "versions"]:
                return {"id": self._register(subject, body)}
            case "POST", ["subjects", subject]:
                return self._lookup(subject, body)
            case "POST", ["compatibility", "subjects", subject, "versions", "latest"]:
                return {"is_compatible": self._follows(subject, body)}
            case "GET", ["config"]:
                return {"compatibilityLevel": self.compatibility}
        raise Refused(404, 404, "HTTP 404 Not Found")

    def _ids(self, subject: str) -> list[int]:
        if subject not in self.subjects:
            raise Refused(404, 40401, f"Subject '{subject}' not found.")
        return self.subjects[subject]

    def _by_id(self, number: int, form: str = "") -> Any:
        if not 0 < number <= len(self.schemas):
            raise Refused(404, 40403, f"Schema {number} not found")
        kind, text = self.schemas[number - 1]
        if kind == "PROTOBUF" and form == "serialized":
            text = serialized_form(text)
        return {"schema": text} | ({} if kind == "AVRO" else {"schemaType": kind})

    def _version(self, subject: str, version: str) -> Any:
        ids = self._ids(subject)
        at = len(ids) if version == "latest" else int(version)
        if not 0 < at <= len(ids):
            raise Refused(404, 40402, f"Version {version} not found.")
        return {"subject": subject, "version": at, "id": ids[at - 1], **self._by_id(ids[at - 1])}

    def _lookup(self, subject: str, body: Any) -> Any:
        wanted = _parsed(body)
        for version, number in enumerate(self._ids(subject), 1):
            kind, text = self.schemas[number - 1]
            if _parsed({"schema": text, "schemaType": kind}) == wanted:
                return {"subject": subject, "version": version, "id": number, **self._by_id(number)}
        raise Refused(404, 40403, "Schema not found")

    def _register(self, subject: str, body: Any) -> int:
        _parsed(body)
        if subject in self.subjects:
            try:
                return int(self._lookup(subject, body)["id"])
            except Refused:
                if not self._follows(subject, body):
                    message = f"Schema being registered is incompatible with an earlier schema for subject {subject!r}"
                    raise Refused(409, 409, message) from None
        return self.put(subject, body["schema"], body.get("schemaType", "AVRO"))

    def _follows(self, subject: str, body: Any) -> bool:
        """BACKWARD: what the last schema wrote can be read with the new one."""
        if self.compatibility == "NONE":
            return True
        kind, last = self.schemas[self._ids(subject)[-1] - 1]
        if body.get("schemaType", "AVRO") != kind:
            return False
        if kind == "PROTOBUF":
            return follows(body["schema"], last)
        found = ReaderWriterCompatibilityChecker().get_compatibility(_parsed(body), avro.schema.parse(last))
        return found.compatibility is SchemaCompatibilityType.compatible


def _parsed(body: Any) -> Any:
    """The schema in a form that is equal for equal ones."""
    kind = body.get("schemaType", "AVRO")
    try:
        if kind == "AVRO":
            return avro.schema.parse(body["schema"])
        if kind == "PROTOBUF":
            return descriptor_of(body["schema"])
    except (AvroException, ValueError) as error:
        raise Refused(422, 42201, f"Invalid schema: {error}") from error
    raise Refused(422, 42201, f"Unsupported type {kind}")


@contextmanager
def schema_registry(**given: Any) -> Iterator[Registry]:
    """A registry that runs during the block, at its `url`."""
    registry = Registry(**given)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            registry.asked.append(f"{self.command} {self.path}")
            try:
                self._check()
                asked = urlsplit(self.path)
                path = [unquote(part) for part in asked.path.strip("/").split("/")]
                form = parse_qs(asked.query).get("format", [""])[0]
                status, said = 200, registry.answer(self.command, path, body, form)
            except Refused as refused:
                status, said = refused.status, {"error_code": refused.code, "message": refused.message}
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _check(self) -> None:
            if registry.away:
                raise Refused(503, 50301, "the store is not ready")
            wanted = registry.user_info and "Basic " + base64.b64encode(registry.user_info.encode()).decode()
            if wanted and self.headers.get("Authorization") != wanted:
                raise Refused(401, 401, "Unauthorized")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        registry.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
