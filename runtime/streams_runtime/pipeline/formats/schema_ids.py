"""The id of a record's schema, which stands before it in a format of a registry, and the registry that knows the id."""

from __future__ import annotations

from typing import Protocol

from streams_runtime.kafka.schema_registry import FoundSchema

MAGIC = b"\0"
PREFIX = 5  # bytes before the body: the magic byte, and the schema's id, big-endian


class Schemas(Protocol):
    """What a schema registry does; kafka.schema_registry.SchemaRegistry, or a test driver's own."""

    def schema(self, id: int) -> FoundSchema | None:
        """The schema of this id; None where there is none."""

    def id_of(self, subject: str, text: str, kind: str = "AVRO") -> int:
        """The id of a schema under a subject; `kind` is AVRO, PROTOBUF or JSON."""


def prefix_of(id: int) -> bytes:
    """What stands before the body of a record that was written with the schema `id`."""
    return MAGIC + id.to_bytes(4, "big")


def id_in(data: bytes) -> int | None:
    """The id of the schema that a record was written with; None where there is none."""
    return int.from_bytes(data[1:PREFIX], "big") if len(data) >= PREFIX and data[:1] == MAGIC else None
