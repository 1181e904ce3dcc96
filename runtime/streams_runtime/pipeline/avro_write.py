"""Columns that left Spark as Avro with the id of its schema before it, as Kafka's AvroSerializer writes them."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_writer, validate
from fastavro.validation import ValidationError
from pyspark.sql.types import DataType

from streams_runtime.api.avro_schema import parse_avro
from streams_runtime.errors import InvalidApplicationException, Mistake, NotSupportedException, StreamsException
from streams_runtime.pipeline.avro_ids import Schemas, prefix_of
from streams_runtime.pipeline.avro_types import misfit, schema_of
from streams_runtime.pipeline.encode import Bytes
from streams_runtime.topology.nodes import Format

_SHOWN = 120  # characters of a record that a message shows


@dataclass(slots=True)
class AvroWriter:
    """Writes the keys or the values (`part`) of a topic. `register` has to be called before anything is written."""

    topic: str
    part: str
    schema: Any
    id: int | None = None
    _parsed: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._parsed = parse_schema(self.schema)

    @property
    def subject(self) -> str:
        """What the registry has the schema under (TopicNameStrategy)."""
        return f"{self.topic}-{self.part}"

    def register(self, schemas: Schemas) -> None:
        """Get the schema's id.

        Raises what `Schemas.id_of` raises.
        """
        if self.id is None:
            self.id = schemas.id_of(self.subject, json.dumps(self.schema, separators=(",", ":")))

    def encoded(self, column: pa.ChunkedArray | pa.Array) -> Bytes:
        """Each row's bytes; null stays None.

        Raises:
            StreamsException: a row that the schema does not hold; the message names the field.
        """
        rows: list[Any] = column.to_pylist(maps_as_pydicts="strict")
        return [None if row is None else self.encode(row) for row in rows]

    def encode(self, row: Any) -> bytes:
        """The bytes of one key or value, as Python has it. Raises as `encoded`."""
        assert self.id is not None
        out = io.BytesIO()
        out.write(prefix_of(self.id))
        try:
            schemaless_writer(out, self._parsed, row)
        except (TypeError, ValueError, AttributeError, OverflowError, KeyError) as error:
            raise StreamsException(self._why(row, error)) from error
        return out.getvalue()

    def _why(self, row: Any, error: Exception) -> str:
        try:
            validate(row, self._parsed, raise_errors=True, strict=False)
            found = str(error)
        except ValidationError as invalid:
            found = "; ".join(str(each) for each in invalid.errors)
        shown = str(row)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        return (
            f"a {self.part} for the topic {self.topic} does not fit its Avro schema: {found}: {shown}. Nothing of the"
            " batch was written; let a step give a value that fits, or let the schema take null"
        )


def avro_writer(topic: str, part: str, format: Format, kind: DataType, path: str) -> AvroWriter:
    """The writer of a sink's key or value (`part`), which is of the Spark type `kind`; `path` is the sink's field.

    Raises:
        InvalidApplicationException: columns that Avro, or the declared schema, does not hold.
    """
    if format.schema is None:
        try:
            return AvroWriter(topic, part, schema_of(kind, record_name(topic, part)))
        except NotSupportedException as error:
            found, _, remedy = str(error).partition("; ")
            raise InvalidApplicationException([Mistake(f"{path}.{part}.format", found, remedy)]) from error
    schema = parse_avro(format.schema).document
    found_misfit = misfit(kind, schema)
    if found_misfit is not None:
        remedy = "correct the schema, or cast the column in a select before the sink"
        raise InvalidApplicationException([Mistake(f"{path}.{part}.schema", found_misfit, remedy)])
    return AvroWriter(topic, part, schema)


def record_name(topic: str, part: str) -> str:
    """Of the topic, so that it stays the same whatever the steps before it are called."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", f"{topic}_{part}")
    return f"_{name}" if name[0].isdigit() else name
