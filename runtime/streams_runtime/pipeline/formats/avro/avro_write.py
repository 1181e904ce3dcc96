"""Columns that left Spark as Avro with the id of its schema before it, as Kafka's AvroSerializer writes them."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, field
from typing import Any

from fastavro import parse_schema, schemaless_writer, validate
from fastavro.validation import ValidationError
from pyspark.sql.types import DataType

from streams_runtime.api.schemas.avro_schema import parse_avro
from streams_runtime.errors import InvalidApplicationException, Mistake, NotSupportedException, StreamsException
from streams_runtime.pipeline.formats.avro.avro_types import misfit, schema_of
from streams_runtime.pipeline.formats.registered_format import RegisteredWriter, shown_row
from streams_runtime.pipeline.formats.schema_ids import Schemas, prefix_of
from streams_runtime.topology.nodes.source_and_sink_nodes import Format


@dataclass(slots=True)
class AvroWriter(RegisteredWriter):
    """Writes Avro; `schema` is what is registered, as JSON has it."""

    schema: Any
    id: int | None = None
    _parsed: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._parsed = parse_schema(self.schema)

    def register(self, schemas: Schemas) -> None:
        """See RegisteredWriter."""
        if self.id is None:
            self.id = schemas.id_of(self.subject, json.dumps(self.schema, separators=(",", ":")))

    def encode(self, row: Any) -> bytes:
        """See RegisteredWriter."""
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
        return (
            f"a {self.part} for the topic {self.topic} does not fit its Avro schema: {found}: {shown_row(row)}."
            " Nothing of the batch was written; let a step give a value that fits, or let the schema take null"
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
