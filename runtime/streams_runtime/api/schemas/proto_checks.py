"""Checks of the format protobuf: its schemas, and what is written with them."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from streams_runtime.api.flow.known_columns import Columns
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.schemas.proto_schema import messages_by_name, parse_proto
from streams_runtime.api.steps.topology_spec import FormatSpec
from streams_runtime.errors import Mistake


def proto_read_mistakes(spec: FormatSpec, part: str, path: str, table: bool) -> Iterator[Mistake]:
    """Of a source's key or value (`part`) in the field `path`."""
    if part == "key" and table:
        found = "the keys of a table as protobuf, whose bytes hold the id of the schema that they were written with"
        yield Mistake(under(path, "format"), found, "use a topic whose keys are string, long, int, bytes or json")
    if spec.schema_ is None:
        found = "is missing; protobuf that is read needs the reader's schema"
        yield Mistake(under(path, "schema"), found, "give the text of a .proto file")
    else:
        yield from _schema_mistakes(spec.schema_, spec.message, path)


def proto_written_mistakes(spec: FormatSpec, path: str) -> Iterator[Mistake]:
    """Of a sink's key or value in the field `path`."""
    if spec.schema_ is not None:
        yield from _schema_mistakes(spec.schema_, spec.message, path)
    elif spec.message is not None:
        remedy = "leave it out, or give the schema that has it"
        yield Mistake(under(path, "message"), f"the message {spec.message!r} of no schema", remedy)


def proto_columns_mistakes(text: str, message: str | None, columns: Columns, path: str) -> Iterator[Mistake]:
    """Columns and the fields of the schema in the field `path` that do not meet, when they are written with it."""
    schema = parse_proto(text, message)
    if schema.problems:
        return
    fields = messages_by_name(schema.files)[f".{schema.full_name}"].field
    names = [each.name for each in fields]
    for each in fields:
        if each.label == FieldDescriptorProto.LABEL_REQUIRED and each.name not in columns.names:
            found = f"the field {each.name!r} is required, and there is no column of this name"
            yield Mistake(path, found, f"make it optional; {suggestion(each.name, columns.names)}")
    for name in columns.names:
        if name not in names:
            yield Mistake(path, f"there is no field for the column {name!r}", suggestion(name, names))


def _schema_mistakes(text: str, message: str | None, path: str) -> Iterator[Mistake]:
    for problem in parse_proto(text, message).problems:
        yield Mistake(under(path, "schema"), problem.found, problem.remedy)
