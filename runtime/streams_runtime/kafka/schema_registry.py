"""The schema registry, through confluent-kafka's client."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from streams_runtime.api.spec.kafka_spec import SchemaRegistrySpec
from streams_runtime.errors import (
    ConfigException,
    SchemaRegistryException,
    SchemaRegistryNotAvailableException,
)
from streams_runtime.kafka.schema_references import ReferencedSchema, UnresolvedReference, referenced

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import RegisteredSchema, Schema, SchemaRegistryClient

T = TypeVar("T")

_TIMEOUT = 10.0  # seconds for one answer
# The client's own retries would hold up a stop; the runtime retries whole batches instead.
_CLIENT = {"timeout": _TIMEOUT, "max.retries": 1, "retries.wait.ms": 100}
_NOT_THERE = (40401, 40402, 40403)
_LOGIN = (401, 403)
_LATER = (408, 429)


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """What the registry has under an id: `kind` is AVRO, PROTOBUF or JSON.

    `needs` is what it refers to under other subjects; `trouble`: why that can't be had, in words about the schema.
    """

    text: str
    kind: str
    needs: tuple[ReferencedSchema, ...] = ()
    trouble: str | None = None


class SchemaRegistry:
    """Schemas by id, and ids of the schemas that are written. Safe to use from several threads."""

    def __init__(self, spec: SchemaRegistrySpec) -> None:
        """Connects to nothing.

        Raises:
            ConfigException: a property that the client can't use; the message has no value of it.
        """
        self.auto_register = spec.auto_register
        self._url = spec.url
        self._calling = threading.Lock()
        self._client = _client(spec)

    def schema(self, id: int) -> FoundSchema | None:
        """The schema of this id; None where the registry has none.

        Raises:
            SchemaRegistryNotAvailableException: call again.
            SchemaRegistryException: it refuses the login.
        """
        found = self._ask(lambda client: client.get_schema(id), f"for the schema {id}")
        if found is None:
            return None
        text, kind = found.schema_str or "", found.schema_type or "AVRO"
        try:
            return FoundSchema(text, kind, referenced(found.references or (), self._version))
        except UnresolvedReference as error:
            return FoundSchema(text, kind, trouble=str(error))

    def id_of(self, subject: str, text: str, kind: str = "AVRO") -> int:
        """The id of a schema (`kind`: AVRO, PROTOBUF or JSON) under a subject; registered if `autoRegister` says so.

        Raises:
            SchemaRegistryNotAvailableException: call again.
            SchemaRegistryException: it refuses the login, or the schema, or the schema is not there.
        """
        from confluent_kafka.schema_registry import Schema

        schema = Schema(text, kind)
        if self.auto_register:
            asked = f"to register the schema of the subject {subject}"
            registered = self._ask(lambda client: client.register_schema(subject, schema), asked)
        else:
            asked = f"for the schema of the subject {subject}"
            known = self._ask(lambda client: client.lookup_schema(subject, schema), asked)
            registered = self._same_id(subject, text, kind) if known is None else known.schema_id
        if registered is None:
            raise SchemaRegistryException(
                f"the schema registry at {self._url} does not have this schema under the subject {subject}: {text}."
                " Register it, or set spec.kafka.schemaRegistry.autoRegister to true"
            )
        return registered

    def _same_id(self, subject: str, text: str, kind: str) -> int | None:
        """The id of the newest version that means the same, written otherwise; None where there is none.

        Confluent's registry compares Avro without its blanks and Protobuf with its comments; others compare texts.
        """
        from streams_runtime.api.schemas.same_schema import same_schema

        asked = f"for the versions of the subject {subject}"
        versions = self._ask(lambda client: client.get_versions(subject), asked) or []
        for version in sorted(versions, reverse=True):
            found = self._registered(subject, version)
            if found is None or found.schema.references or (found.schema.schema_type or "AVRO") != kind:
                continue
            if same_schema(kind, text, found.schema.schema_str or ""):
                return found.schema_id
        return None

    def _version(self, subject: str, version: int) -> Schema | None:
        found = self._registered(subject, version)
        return None if found is None else found.schema

    def _registered(self, subject: str, version: int) -> RegisteredSchema | None:
        asked = f"for the version {version} of the subject {subject}"
        return self._ask(lambda client: client.get_version(subject, version), asked)

    def _ask(self, call: Callable[[SchemaRegistryClient], T], asked: str) -> T | None:
        """The answer; None for "not there"."""
        import httpx
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            with self._calling:
                return call(self._client)
        except SchemaRegistryError as error:
            status, code = error.http_status_code, error.error_code
            if code in _NOT_THERE:
                return None
            said = f"the schema registry at {self._url}, asked {asked}, answered {status}: {error.error_message}"
            if status >= 500 or status in _LATER:
                raise SchemaRegistryNotAvailableException(f"{said}. It is asked again") from error
            raise SchemaRegistryException(f"{said.rstrip('. ')}. {_remedy(status)}") from error
        except httpx.HTTPError as error:
            raise SchemaRegistryNotAvailableException(
                f"the schema registry at {self._url} does not answer ({type(error).__name__}: {error}), asked {asked}."
                " It is asked again; check spec.kafka.schemaRegistry.url if this goes on"
            ) from error


def _remedy(status: int) -> str:
    if status in _LOGIN:
        return "Correct basic.auth.user.info in the Secret of spec.kafka.schemaRegistry.secretRef"
    if status == 409:
        return (
            "The schema can't follow the subject's earlier ones: give new fields a default, or change the subject's"
            " compatibility"
        )
    if status == 404:
        return "Correct spec.kafka.schemaRegistry.url: nothing answers as a schema registry there"
    return "Correct the schema"


def _client(spec: SchemaRegistrySpec) -> SchemaRegistryClient:
    with warnings.catch_warnings(record=True):
        # Authlib, which the client imports, deprecates the HTTP library that the client asks for.
        from confluent_kafka.schema_registry import SchemaRegistryClient
    try:
        return SchemaRegistryClient({"url": spec.url, **_CLIENT, **spec.config})
    except (ValueError, TypeError, OSError) as error:
        # Without the chain and the text: they may quote a secret value.
        text = f"spec.kafka.schemaRegistry can't be used ({type(error).__name__}); see to its url, and that the files"
        raise ConfigException(
            f"{text} and the PEM text of its certificates are right, and basic.auth.user.info is user:password"
        ) from None
