"""Checks of the format avro: its schemas, and the registry that it, protobuf and jsonschema need."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streams_runtime.api.flow.known_columns import Columns
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.reading.readable_parts import Parts
from streams_runtime.api.schemas.avro_schema import parse_avro, record_problems
from streams_runtime.api.spec.kafka_spec import KafkaSpec
from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.api.steps.topology_spec import FormatSpec
from streams_runtime.errors import Mistake

CLIENT_PROPERTIES = (
    "basic.auth.user.info",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "proxy",
)
"""What `spec.kafka.schemaRegistry.config` may hold, by the names of the registry's client."""

_AT = "spec.kafka.schemaRegistry"
_URL = re.compile(r"https?://[^\s,/@]+[^\s,@]*")


def avro_read_mistakes(spec: FormatSpec, part: str, path: str, table: bool) -> Iterator[Mistake]:
    """Of a source's key or value (`part`) in the field `path`."""
    field = under(path, "schema")
    if part == "key" and table:
        found = "the keys of a table as avro, whose bytes hold the id of the schema that they were written with"
        yield Mistake(under(path, "format"), found, "use a topic whose keys are string, long, int, bytes or json")
    if spec.schema_ is None:
        yield Mistake(field, "is missing; avro that is read needs the reader's schema", "give it as JSON")
    else:
        yield from _schema_mistakes(spec.schema_, part, field)


def avro_written_mistakes(spec: FormatSpec, part: str, path: str) -> Iterator[Mistake]:
    """Of a sink's key or value (`part`) in the field `path`."""
    if spec.schema_ is not None:
        yield from _schema_mistakes(spec.schema_, part, under(path, "schema"))


def avro_columns_mistakes(text: str, columns: Columns, path: str) -> Iterator[Mistake]:
    """Columns and the fields of the schema in the field `path` that do not meet, when they are written with it."""
    schema = parse_avro(text)
    if schema.problems or schema.columns is None:
        return
    names = set(columns.names)
    for each in schema.document["fields"]:
        if each["name"] not in names and "default" not in each:
            found = f"the field {each['name']!r} has no default, and there is no column of this name"
            yield Mistake(path, found, f"give it a default; {suggestion(each['name'], columns.names)}")
    for name in columns.names:
        if name not in schema.columns.names:
            yield Mistake(path, f"there is no field for the column {name!r}", suggestion(name, schema.columns.names))


def registry_mistakes(parts: Parts) -> Iterator[Mistake]:
    """Of the registry itself, and that it is missing where a format needs it."""
    registry = parts.kafka.schema_registry if parts.kafka else None
    if registry is not None and parts.kafka is not None:
        yield from _registry(parts.kafka)
    if registry is None and parts.kafka is not None:
        for path, spec in _formats(parts):
            if spec.format in REGISTERED:
                yield Mistake(
                    _AT, f"is missing, and {under(path, 'format')} is {spec.format}", "give the registry's url"
                )
                return


def _registry(kafka: KafkaSpec) -> Iterator[Mistake]:
    assert kafka.schema_registry is not None
    for url in kafka.schema_registry.url.split(","):
        if not _URL.fullmatch(url.strip()):
            # Without what was found: it may hold a password.
            remedy = "write http://host:port or https://host:port; user and password go into basic.auth.user.info"
            yield Mistake(f"{_AT}.url", "an address that can't be used", remedy)
    for name in kafka.schema_registry.config:
        if name not in CLIENT_PROPERTIES:
            found = "no property of the registry's client that can be set here"
            yield Mistake(under(f"{_AT}.config", name), found, suggestion(name, CLIENT_PROPERTIES))


def _formats(parts: Parts) -> Iterator[tuple[str, FormatSpec]]:
    models = [(each.path, each.model) for each in parts.sources] + [(each.path, each.model) for each in parts.sinks]
    for path, model in models:
        for field, spec in (("key", model.key), ("value", model.value)) if model is not None else ():
            if spec is not None:
                yield under(path, field), spec


def _schema_mistakes(text: str, part: str, path: str) -> Iterator[Mistake]:
    schema = parse_avro(text)
    for problem in (*schema.problems, *(record_problems(schema) if part == "value" else ())):
        yield Mistake(path, problem.found, problem.remedy)
