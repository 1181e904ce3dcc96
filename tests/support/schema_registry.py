"""A schema registry for tests without a JVM: the HTTP API of Confluent's, as far as Avro, Protobuf and JSON go.

Ids are global and count from 1; a schema has one id under all subjects, versions count from 1 in each subject.
Registering checks compatibility: by Avro's own rules, for Protobuf by this project's; of JSON one may follow
every other. Errors have Confluent's codes.
Tests of `integration` have a real one (real_registry).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import avro.schema
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.errors import AvroException
from proto_subjects import descriptor_of, follows, serialized_form
from registry_front import RegistryFront, refusal, serving


class Refused(Exception):
    """An error answer."""

    def __init__(self, status: int, code: int, message: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(message)


@dataclass
class Registry(RegistryFront):
    """What a registry holds, in memory."""

    compatibility: str = "BACKWARD"
    schemas: list[tuple[str, str]] = field(default_factory=list)
    """Type and text of each id, from 1 on."""
    subjects: dict[str, list[int]] = field(default_factory=dict)

    def answered(self, method: str, target: str, body: bytes | None) -> tuple[int, bytes]:
        """See RegistryFront."""
        asked = urlsplit(target)
        path = [unquote(part) for part in asked.path.strip("/").split("/")]
        form = parse_qs(asked.query).get("format", [""])[0]
        try:
            said = self._said(method, path, None if body is None else json.loads(body), form)
        except Refused as refused:
            return refused.status, refusal(refused.code, refused.message)
        return 200, json.dumps(said).encode()

    def ids(self, subject: str) -> list[int]:
        """See RegistryFront."""
        return self.subjects.get(subject, [])

    def schema(self, id: int) -> tuple[str, str]:
        """See RegistryFront."""
        return self.schemas[id - 1]

    def accept_all(self) -> None:
        """See RegistryFront."""
        self.compatibility = "NONE"

    def put(self, subject: str, text: str, kind: str = "AVRO") -> int:
        """See RegistryFront; without a question of compatibility."""
        text = text if kind != "AVRO" else json.dumps(json.loads(text), separators=(",", ":"))
        if (kind, text) not in self.schemas:
            self.schemas.append((kind, text))
        number = self.schemas.index((kind, text)) + 1
        if number not in self.subjects.setdefault(subject, []):
            self.subjects[subject].append(number)
        return number

    def _said(self, method: str, path: list[str], body: Any, form: str = "") -> Any:
        """The answer to a question; `form` is its `format=`."""
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
        if kind == "JSON":
            return True
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
        if kind == "JSON":
            return json.loads(body["schema"])
    except (AvroException, ValueError) as error:
        raise Refused(422, 42201, f"Invalid schema: {error}") from error
    raise Refused(422, 42201, f"Unsupported type {kind}")


@contextmanager
def schema_registry(**given: Any) -> Iterator[Registry]:
    """A registry that runs during the block, at its `url`."""
    with serving(Registry(**given)) as registry:
        yield registry
