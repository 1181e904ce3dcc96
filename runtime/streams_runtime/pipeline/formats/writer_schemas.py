"""The schemas that records were written with: by the ids that stand before the records, fetched once each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.kafka.schema_registry import FoundSchema
from streams_runtime.pipeline.formats.schema_ids import PREFIX, Schemas, id_in

Schema = TypeVar("Schema")


class UnusableSchema(Exception):
    """Nothing can be read with a schema of the registry. The message says why, in words that follow "can't be used"."""


class WriterSchemas(Generic[Schema]):
    """Writer's schemas of one format by id, as the format parses them.

    Those that can't be used are asked for anew each time: they may be registered yet.
    """

    def __init__(self, schemas: Schemas, kind: str, parse: Callable[[FoundSchema], Schema]) -> None:
        """`kind` is AVRO, PROTOBUF or JSON. `parse` reads a schema; it raises UnusableSchema where it can't."""
        self._schemas = schemas
        self._kind = kind
        self._parse = parse
        self.known: dict[int, Schema] = {}

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
        if found.kind != self._kind:
            return f"the schema {id}, which it was written with, is of the type {found.kind} and not {self._kind}"
        if found.trouble is not None:
            return f"the schema {id}, which it was written with, can't be used: {found.trouble}"
        try:
            self.known[id] = self._parse(found)
        except UnusableSchema as error:
            return f"the schema {id}, which it was written with, can't be used: {error}"
        return None
