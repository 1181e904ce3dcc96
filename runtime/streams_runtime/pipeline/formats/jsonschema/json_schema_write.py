"""Columns that left Spark as JSON with the id of its schema before it, as Kafka's own serializer writes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import DataType

from streams_runtime.api.schemas.json_schema import object_problems, parse_json_schema
from streams_runtime.errors import InvalidApplicationException, Mistake, NotSupportedException, StreamsException
from streams_runtime.pipeline.formats.avro.avro_write import record_name
from streams_runtime.pipeline.formats.jsonschema.json_schema_types import misfit, schema_of
from streams_runtime.pipeline.formats.jsonschema.json_schema_values import UnfitJson, values_of
from streams_runtime.pipeline.formats.registered_format import RegisteredWriter, shown_row
from streams_runtime.pipeline.formats.schema_ids import Schemas, prefix_of
from streams_runtime.topology.nodes.source_and_sink_nodes import Format


@dataclass(slots=True)
class JsonSchemaWriter(RegisteredWriter):
    """Writes JSON; `text` is the schema that is registered, and that every row is valid by."""

    text: str
    _head: bytes | None = None

    def register(self, schemas: Schemas) -> None:
        """See RegisteredWriter."""
        if self._head is None:
            self._head = prefix_of(schemas.id_of(self.subject, self.text, "JSON"))

    def encode(self, row: Any) -> bytes:
        """See RegisteredWriter."""
        assert self._head is not None
        try:
            return self._head + values_of(self.text).written(row)
        except UnfitJson as error:
            raise StreamsException(
                f"a {self.part} for the topic {self.topic} does not fit its JSON Schema: {error}: {shown_row(row)}."
                " Nothing of the batch was written; let a step give a value that fits, or let the schema take it"
            ) from error


def json_schema_writer(topic: str, part: str, format: Format, kind: DataType, path: str) -> JsonSchemaWriter:
    """The writer of a sink's key or value (`part`), which is of the Spark type `kind`; `path` is the sink's field.

    Raises:
        InvalidApplicationException: columns that JSON Schema, or the declared schema, does not hold.
    """
    if format.schema is not None:
        root = parse_json_schema(format.schema).root
        wrong = None if root is None else misfit(kind, root)
        if wrong is not None:
            remedy = "correct the schema, or cast the column in a select before the sink"
            raise InvalidApplicationException([Mistake(f"{path}.{part}.schema", wrong, remedy)])
        return JsonSchemaWriter(topic, part, format.schema)
    try:
        text = json.dumps(schema_of(kind, record_name(topic, part)), separators=(",", ":"))
    except NotSupportedException as error:
        found, _, remedy = str(error).partition("; ")
        raise InvalidApplicationException([Mistake(f"{path}.{part}.format", found, remedy)]) from error
    made = parse_json_schema(text)
    problems = (*made.problems, *(object_problems(made) if part == "value" else ()))
    if problems:
        remedy = "rename or select columns before the sink, or declare a schema"
        raise InvalidApplicationException([Mistake(f"{path}.{part}.format", problems[0].found, remedy)])
    return JsonSchemaWriter(topic, part, text)
