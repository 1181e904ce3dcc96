"""The schemas that Avro records were written with, as JSON."""

from __future__ import annotations

import json
from typing import Any

from fastavro import parse_schema
from fastavro.schema import SchemaParseException, UnknownType

from streams_runtime.api.schemas.avro_recursion import hostile
from streams_runtime.api.schemas.avro_references import written_out
from streams_runtime.api.spec.limits import excess
from streams_runtime.kafka.schema_registry import FoundSchema
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.pipeline.formats.writer_schemas import UnusableSchema, WriterSchemas

AvroWriterSchemas = WriterSchemas[str]


def avro_writer_schemas(schemas: Schemas) -> AvroWriterSchemas:
    """None is known yet."""
    return WriterSchemas(schemas, "AVRO", _usable)


def _usable(found: FoundSchema) -> str:
    """The schema as one document, in which what it refers to is written out."""
    try:
        document = written_out(found.text, [each.text for each in found.needs])
        wrong = excess(document) or hostile(document)
    except (ValueError, RecursionError):
        wrong = "it is no JSON, or nested too deeply"
    if wrong is None and found.needs:
        wrong = _unparsed(document)
    if wrong is not None:
        raise UnusableSchema(wrong)
    return json.dumps(document) if found.needs else found.text


def _unparsed(document: Any) -> str | None:
    """Why it is no schema once what it refers to stands in it: a registry need not look into that."""
    try:
        parse_schema(document)
    except (SchemaParseException, UnknownType, ValueError, TypeError, KeyError, AttributeError) as error:
        return f"with what it refers to, it is no schema ({type(error).__name__}: {error})"
    return None
