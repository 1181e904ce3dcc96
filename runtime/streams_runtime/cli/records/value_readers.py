"""How the bytes of keys and values are read, by the format that a user names for a topic."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import orjson

from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.errors import ConfigException
from streams_runtime.query.wire.json_values import to_plain
from streams_runtime.state.serdes import Serde
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

if TYPE_CHECKING:
    from streams_runtime.kafka.schema_registry import SchemaRegistry

Read = Callable[[bytes], Any]
"""What bytes stand for, as JSON has it. Raises SerdeException where they are not of the format."""


class RecordFormat(StrEnum):
    """The formats of keys and values; those in a registry are read by the schema that each was written with."""

    STRING = "string"
    JSON = "json"
    LONG = "long"
    INT = "int"
    DOUBLE = "double"
    BYTES = "bytes"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSONSCHEMA = "jsonschema"


def reader_of(named: RecordFormat, serde: Callable[[Format], Serde], registry: SchemaRegistry | None) -> Read:
    """How one part of a record is read; `serde` gives the plain formats.

    Raises:
        ConfigException: the format needs a schema registry.
    """
    if named in REGISTERED:
        if registry is None:
            raise ConfigException(f"the format {named} needs a schema registry. Give its address by --schema-registry")
        return _registered(named, registry)
    of_format = serde(Format(named))

    def read(data: bytes) -> Any:
        value = of_format.decode(data)
        # A document goes on as it was written: numbers keep all of their digits.
        return orjson.Fragment(data) if named is RecordFormat.JSON and b"\n" not in data else to_plain(value)

    return read


def _registered(named: RecordFormat, registry: SchemaRegistry) -> Read:
    # Only here: these load Spark's client, which takes a second.
    if named is RecordFormat.AVRO:
        from streams_runtime.pipeline.formats.avro.avro_values import decoded
        from streams_runtime.pipeline.formats.avro.avro_writer_schemas import avro_writer_schemas

        avro = avro_writer_schemas(registry)
        return lambda data: decoded(data, None, avro)
    if named is RecordFormat.JSONSCHEMA:
        from streams_runtime.pipeline.formats.jsonschema import json_schema_read

        written = json_schema_read.json_writer_schemas(registry)
        return lambda data: json_schema_read.as_written(data, written)
    from streams_runtime.pipeline.formats.protobuf.proto_read import as_written
    from streams_runtime.pipeline.formats.protobuf.proto_writer_schemas import proto_writer_schemas

    protobuf = proto_writer_schemas(registry)
    return lambda data: as_written(data, protobuf)
