"""Avro inside Spark: each record by the schema that it was written with, resolved into the reader's by Avro's own Java.

The reader's schema gets one field more, which no writer has: its default stands for "could be read", as opposed to a
record whose fields are all null, which is what Spark makes of one that it can't read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import DataType

from streams_runtime.api.flow.known_columns import shown_type
from streams_runtime.api.schemas.avro_schema import parse_avro
from streams_runtime.pipeline.formats.avro.avro_values import decoded, unreadable
from streams_runtime.pipeline.formats.avro.avro_writer_schemas import AvroWriterSchemas
from streams_runtime.pipeline.formats.fitting_values import TEXTS, TIMES, fits
from streams_runtime.pipeline.formats.registered_format import RegisteredFormat
from streams_runtime.pipeline.formats.schema_ids import PREFIX, prefix_of
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

_READABLE = "_readable"


@dataclass(frozen=True, slots=True)
class AvroFormat(RegisteredFormat):
    """The format of Avro that is read, with the schemas that records are known to have been written with."""

    writers: AvroWriterSchemas | None = field(default=None, compare=False, repr=False)

    def parsed(self, data: Column) -> Column:
        """See RegisteredFormat."""
        return parsed_avro(data, self)

    def is_unreadable(self, data: Column, parsed: Column) -> Column:
        """See RegisteredFormat."""
        return is_unreadable(data, parsed, self)

    def content(self, parsed: Column) -> Column:
        """See RegisteredFormat."""
        return avro_content(parsed, self)

    def learn(self, data: pa.ChunkedArray | pa.Array) -> bool:
        """See RegisteredFormat."""
        return self.writers is not None and self.writers.learn(data)

    def unreadable(self, data: bytes) -> str | None:
        """See RegisteredFormat."""
        assert self.writers is not None
        return unreadable(data, self.schema, self.writers)

    def decoded(self, data: bytes) -> object:
        """See RegisteredFormat."""
        assert self.writers is not None
        return decoded(data, self.schema, self.writers)


def parsed_avro(data: Column, format: AvroFormat) -> Column:
    """Null for a record that can't be read; of a record's schema, a struct with one field more."""
    reader = _with_mark(format)
    body = F.substring(data, PREFIX + 1, 2**31 - 1 - PREFIX)
    # Never taken: it gives the type where no writer's schema is known.
    cases = F.when(F.lit(False), from_avro(body, reader))
    for number, writer in sorted(format.writers.known.items() if format.writers is not None else ()):
        # Spark's reading of a body of a schema that cannot be resolved is null, and so is that of a damaged body.
        value = from_avro(body, writer, {"avroSchema": reader, "mode": "PERMISSIVE"})
        cases = cases.when(F.substring(data, 1, PREFIX) == F.lit(bytearray(prefix_of(number))), value)
    return cases


def is_unreadable(data: Column, parsed: Column, format: AvroFormat) -> Column:
    """Whether `data` can't be read."""
    missing = parsed[_READABLE].isNull() if is_record(format) else parsed.isNull()
    kind = parse_avro(format.schema or "").type
    fitting = None if kind is None else fits(parsed, DataType.fromDDL(shown_type(kind)), TEXTS | TIMES)
    return data.isNotNull() & (missing if fitting is None else missing | ~fitting)


def avro_content(parsed: Column, format: AvroFormat) -> Column:
    """The value itself."""
    return F.when(parsed[_READABLE], parsed.dropFields(_READABLE)) if is_record(format) else parsed


def is_record(format: Format) -> bool:
    """Whether the reader's schema is a record."""
    return parse_avro(format.schema or "").columns is not None


def _with_mark(format: AvroFormat) -> str:
    document = parse_avro(format.schema or "").document
    if is_record(format):
        mark = {"name": _READABLE, "type": "boolean", "default": True}
        document = {**document, "fields": [*document["fields"], mark]}
    return json.dumps(document)
