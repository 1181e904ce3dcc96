"""Pytest plugin: a real schema registry, Apicurio's, one a worker; each test has a group of its own in it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from apicurio import Apicurio, apicurio, apicurio_folder, is_apicurio_here
from kube_process import free_port, temporary_folder
from proto_subjects import serialized_form
from registry_front import RegistryFront, serving

from streams_runtime.errors import EnvironmentException

_FETCHING = 900.0  # seconds
_TIMEOUT = 60.0  # seconds for one answer on a loaded machine
_JSON = "application/vnd.schemaregistry.v1+json"


@dataclass
class RealRegistry(RegistryFront):
    """A group of Apicurio's, which has subjects of its own; None: the one in which it looks for references.

    Ids are those of all groups.
    """

    server: str = ""
    group: str | None = field(default_factory=lambda: f"test-{uuid.uuid4().hex[:12]}")
    _client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=_TIMEOUT))

    def answered(self, method: str, target: str, body: bytes | None) -> tuple[int, bytes]:
        """See RegistryFront."""
        found = self._sent(method, target, body)
        if found.is_success and "format=serialized" in target:
            return found.status_code, _as_descriptor(found.json())
        return found.status_code, found.content

    def put(self, subject: str, text: str, kind: str = "AVRO") -> int:
        """See RegistryFront."""
        body = json.dumps({"schema": text, "schemaType": kind})
        return int(self._asked("POST", f"/subjects/{quote(subject, safe='')}/versions", body)["id"])

    def ids(self, subject: str) -> list[int]:
        """See RegistryFront."""
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return [int(self._asked("GET", f"{path}/{each}")["id"]) for each in self._asked("GET", path)]

    def schema(self, id: int) -> tuple[str, str]:
        """See RegistryFront."""
        found = self._asked("GET", f"/schemas/ids/{id}")
        return found.get("schemaType", "AVRO"), found["schema"]

    def accept_all(self) -> None:
        """See RegistryFront. All groups share it, so it ends with the test."""
        self._demand("NONE")

    def start_over(self) -> None:
        """What a test finds: Confluent's default compatibility."""
        self._demand("BACKWARD")

    def close(self) -> None:
        """Close the connections to the server."""
        self._client.close()

    def _sent(self, method: str, target: str, body: bytes | None) -> httpx.Response:
        headers = {"Content-Type": _JSON} | ({} if self.group is None else {"X-Registry-GroupId": self.group})
        return self._client.request(method, f"{self.server}{target}", content=body, headers=headers)

    def _demand(self, level: str) -> None:
        self._asked("PUT", "/config", json.dumps({"compatibility": level}))

    def _asked(self, method: str, target: str, body: str | None = None) -> Any:
        found = self._sent(method, target, None if body is None else body.encode())
        assert found.is_success, f"{method} {target}: {found.status_code} {found.text}"
        return found.json()


def _as_descriptor(found: dict[str, Any]) -> bytes:
    """The answer with a descriptor, as Confluent's registry gives it: its deserializer of Protobuf reads no text.

    Apicurio leaves what `format` asks for out. This project's client does not ask.
    """
    if found.get("schemaType") == "PROTOBUF":
        found["schema"] = serialized_form(found["schema"])
    return json.dumps(found).encode()


@pytest.fixture(scope="session")
def apicurio_server() -> Iterator[Apicurio]:
    """One for all tests of a worker, started by the first that asks for it, in some seconds."""
    try:
        apicurio_folder()
    except EnvironmentException as missing:
        pytest.skip(str(missing))
    with temporary_folder("apicurio") as folder, apicurio(folder, free_port()) as running:
        yield running


@pytest.fixture
def real_registry(apicurio_server: Apicurio) -> Iterator[RealRegistry]:
    """An empty registry of the test's own."""
    registry = RealRegistry(server=apicurio_server.url)
    registry.start_over()
    with serving(registry):
        yield registry
    registry.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test of a machine without the program waits until it is fetched."""
    if not is_apicurio_here():
        for each in items:
            if "apicurio_server" in getattr(each, "fixturenames", ()):
                each.add_marker(pytest.mark.timeout(_FETCHING))
