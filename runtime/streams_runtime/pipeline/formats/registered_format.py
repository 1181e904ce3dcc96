"""What the formats have in common whose records begin with the id of a schema in a registry: Avro, Protobuf, JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column

from streams_runtime.batch.encode import Bytes
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

_SHOWN = 120  # characters of a row that a message shows


@dataclass(frozen=True, slots=True)
class RegisteredFormat(Format):
    """Such a format of what is read, with what is known of the schemas that records were written with."""

    @abstractmethod
    def parsed(self, data: Column) -> Column:
        """The bytes parsed by the schemas that are known now."""

    @abstractmethod
    def is_unreadable(self, data: Column, parsed: Column) -> Column:
        """Whether `data` can't be read."""

    @abstractmethod
    def content(self, parsed: Column) -> Column:
        """The value itself."""

    @abstractmethod
    def learn(self, data: pa.ChunkedArray | pa.Array) -> bool:
        """Fetch the schemas of these records that are not known; whether any has become known.

        Raises:
            SchemaRegistryNotAvailableException, SchemaRegistryException: the registry has to say, and does not.
        """

    @abstractmethod
    def unreadable(self, data: bytes) -> str | None:
        """Why the bytes can't be read, in words that follow "it is"; None where they can. Raises as `learn`."""

    @abstractmethod
    def decoded(self, data: bytes) -> object:
        """What the bytes stand for, as JSON has it: times as text, bytes in base64, decimals as text.

        Raises:
            SerdeException: it can't be read; the message says why.
            SchemaRegistryNotAvailableException, SchemaRegistryException: its schema is not known yet.
        """


@dataclass(slots=True)
class RegisteredWriter(ABC):
    """Writes the keys or the values (`part`) of a topic. `register` has to be called before anything is written."""

    topic: str
    part: str

    @property
    def subject(self) -> str:
        """What the registry has the schema under (TopicNameStrategy)."""
        return f"{self.topic}-{self.part}"

    @abstractmethod
    def register(self, schemas: Schemas) -> None:
        """Get the schema's id. Raises what `Schemas.id_of` raises."""

    def encoded(self, column: pa.ChunkedArray | pa.Array) -> Bytes:
        """Each row's bytes; null stays None.

        Raises:
            StreamsException: a row that the schema does not hold; the message names the field.
        """
        rows: list[Any] = column.to_pylist(maps_as_pydicts="strict")
        return [None if row is None else self.encode(row) for row in rows]

    @abstractmethod
    def encode(self, row: Any) -> bytes:
        """The bytes of one key or value, as Python has it. Raises as `encoded`."""


def shown_row(row: object) -> str:
    """A row as a message shows it: its beginning."""
    text = str(row)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
