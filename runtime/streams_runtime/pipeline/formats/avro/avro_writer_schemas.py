"""The schemas that Avro records were written with, as JSON."""

from __future__ import annotations

import json

from streams_runtime.api.schemas.avro_recursion import hostile
from streams_runtime.api.spec.limits import excess
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.pipeline.formats.writer_schemas import UnusableSchema, WriterSchemas

AvroWriterSchemas = WriterSchemas[str]


def avro_writer_schemas(schemas: Schemas) -> AvroWriterSchemas:
    """None is known yet."""
    return WriterSchemas(schemas, "AVRO", _usable)


def _usable(text: str) -> str:
    try:
        document = json.loads(text)
        wrong = excess(document) or hostile(document)
    except (ValueError, RecursionError):
        wrong = "it is no JSON, or nested too deeply"
    if wrong is not None:
        raise UnusableSchema(wrong)
    return text
