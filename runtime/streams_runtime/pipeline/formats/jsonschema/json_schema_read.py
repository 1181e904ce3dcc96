"""JSON with the id of its schema inside Spark: Python workers read each record by the source's schema.

JSON says by itself what it holds, so the source's schema alone decides, as in Confluent's deserializer of Python. The
schema that a record names has to be there and to be a JSON Schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from streams_runtime.api.flow.known_columns import shown_type
from streams_runtime.api.schemas.json_schema import parse_json_schema
from streams_runtime.kafka.schema_registry import FoundSchema
from streams_runtime.pipeline.formats.jsonschema.json_schema_values import UnfitJson, values_of
from streams_runtime.pipeline.formats.plain_values import plain
from streams_runtime.pipeline.formats.registered_format import RegisteredFormat
from streams_runtime.pipeline.formats.schema_ids import MAGIC, PREFIX, Schemas, id_in, prefix_of
from streams_runtime.pipeline.formats.writer_schemas import WriterSchemas
from streams_runtime.state.serdes import SerdeException

JsonWriterSchemas = WriterSchemas[str]


def json_writer_schemas(schemas: Schemas) -> JsonWriterSchemas:
    """None is known yet."""
    return WriterSchemas(schemas, "JSON", _text)


def _text(found: FoundSchema) -> str:
    return found.text


@dataclass(frozen=True, slots=True)
class JsonSchemaFormat(RegisteredFormat):
    """The format of JSON that is read by a schema, with what is known of the schemas that records name."""

    writers: JsonWriterSchemas | None = field(default=None, compare=False, repr=False)

    def parsed(self, data: Column) -> Column:
        """The value, which is null for a record that can't be read."""
        text = self.schema or ""
        kind = parse_json_schema(text).type
        assert kind is not None
        known = self.writers.known if self.writers is not None else ()
        made: Any = F.udf(
            _Parse(text, frozenset(map(prefix_of, known))), DataType.fromDDL(shown_type(kind)), useArrow=False
        )
        parsed: Column = made(data)
        return parsed

    def is_unreadable(self, data: Column, parsed: Column) -> Column:
        """Whether `data` can't be read."""
        return data.isNotNull() & parsed.isNull()

    def content(self, parsed: Column) -> Column:
        """The value itself, as it was parsed."""
        return parsed

    def learn(self, data: pa.ChunkedArray | pa.Array) -> bool:
        """See RegisteredFormat."""
        return self.writers is not None and self.writers.learn(data)

    def unreadable(self, data: bytes) -> str | None:
        """See RegisteredFormat."""
        try:
            self._read(data)
        except UnfitJson as error:
            return str(error)
        return None

    def decoded(self, data: bytes) -> object:
        """See RegisteredFormat."""
        try:
            return plain(self._read(data))
        except UnfitJson as error:
            raise SerdeException(f"jsonschema: {error}") from error

    def _read(self, data: bytes) -> Any:
        assert self.writers is not None
        number = _known_id(data, self.writers)
        try:
            return values_of(self.schema or "").read(data[PREFIX:])
        except UnfitJson as error:
            raise UnfitJson(f"{error}; it names the schema {number}") from error


def as_written(data: bytes, writers: JsonWriterSchemas) -> object:
    """A record as it is, whatever schema it was written with; otherwise as `RegisteredFormat.decoded`."""
    try:
        _known_id(data, writers)
        found: object = orjson.loads(data[PREFIX:])
    except (UnfitJson, orjson.JSONDecodeError) as error:
        raise SerdeException(f"jsonschema: {error}") from error
    return found


def _known_id(data: bytes, writers: JsonWriterSchemas) -> int:
    """The id before a record. Raises UnfitJson where nothing can be read that begins so."""
    number = id_in(data)
    if number is None:
        begins = f"begins with {data[:PREFIX].hex()}" if data else "has no bytes"
        stands = f"where a {MAGIC.hex()} byte and four of the id stand"
        raise UnfitJson(f"not JSON with the id of its schema: it {begins}, {stands}")
    problem = writers.problem(number)
    if problem is not None:
        raise UnfitJson(f"not to be read: {problem}")
    return number


@dataclass(frozen=True, slots=True)
class _Parse:
    """What Spark's workers call with the bytes of each record."""

    text: str
    heads: frozenset[bytes]

    def __call__(self, data: bytearray | None) -> Any:
        if data is None or bytes(data[:PREFIX]) not in self.heads:
            return None
        try:
            return values_of(self.text).read(bytes(data[PREFIX:]))
        except UnfitJson:
            return None  # the batch counts it, and asks for the reason
