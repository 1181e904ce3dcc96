"""The schemas that Avro records were written with: by the ids that stand before the records, fetched once each."""

from __future__ import annotations

import json
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.api.avro_hostile import hostile
from streams_runtime.api.limits import excess
from streams_runtime.kafka.schema_registry import FoundSchema

MAGIC = b"\0"
PREFIX = 5  # bytes before the body: the magic byte, and the schema's id, big-endian


class Schemas(Protocol):
    """What a schema registry does; kafka.schema_registry.SchemaRegistry, or a test driver's own."""

    def schema(self, id: int) -> FoundSchema | None:
        """The schema of this id; None where there is none."""

    def id_of(self, subject: str, text: str, kind: str = "AVRO") -> int:
        """The id of a schema under a subject; `kind` is AVRO or PROTOBUF."""


def prefix_of(id: int) -> bytes:
    """What stands before the body of a record that was written with the schema `id`."""
    return MAGIC + id.to_bytes(4, "big")


def id_in(data: bytes) -> int | None:
    """The id of the schema that a record was written with; None where there is none."""
    return int.from_bytes(data[1:PREFIX], "big") if len(data) >= PREFIX and data[:1] == MAGIC else None


class WriterSchemas:
    """Writer's schemas by id. Those that can't be used are asked for anew each time: they may be registered yet."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self.known: dict[int, str] = {}
        """Avro schemas by id, as JSON."""

    def learn(self, data: pa.ChunkedArray | pa.Array) -> bool:
        """Fetch the schemas of these records that are not known; whether any has become known.

        Raises what `Schemas.schema` raises.
        """
        starts = pc.unique(pc.binary_slice(data, 0, PREFIX))
        new = {id_in(start) for start in starts.to_pylist() if start is not None} - {None, *self.known}
        before = len(self.known)
        for each in sorted(each for each in new if each is not None):
            self.problem(each)
        return len(self.known) > before

    def problem(self, id: int) -> str | None:
        """Why nothing can be read with the schema `id`; None: it is known now.

        Raises what `Schemas.schema` raises.
        """
        if id in self.known:
            return None
        found = self._schemas.schema(id)
        if found is None:
            return f"the schema registry has no schema {id}, which it was written with"
        if found.kind != "AVRO":
            return f"the schema {id}, which it was written with, is of the type {found.kind} and not AVRO"
        if not found.alone:
            return f"the schema {id}, which it was written with, refers to other subjects, which is not there yet"
        try:
            document = json.loads(found.text)
            wrong = excess(document) or hostile(document)
        except (ValueError, RecursionError):
            wrong = "it is no JSON, or nested too deeply"
        if wrong is not None:
            return f"the schema {id}, which it was written with, can't be used: {wrong}"
        self.known[id] = found.text
        return None
