"""Columns that left Spark as Protobuf with the id of its schema before it, as Kafka's own serializer writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import DataType, StructType

from streams_runtime.api.schemas.proto_schema import parse_proto
from streams_runtime.errors import InvalidApplicationException, Mistake, NotSupportedException, StreamsException
from streams_runtime.pipeline.formats.avro.avro_write import record_name
from streams_runtime.pipeline.formats.protobuf.proto_fill import UnfitValue, filled
from streams_runtime.pipeline.formats.protobuf.proto_messages import MessageType, message_class
from streams_runtime.pipeline.formats.protobuf.proto_read import message_type
from streams_runtime.pipeline.formats.protobuf.proto_types import misfit, text_of
from streams_runtime.pipeline.formats.protobuf.proto_wire import framed
from streams_runtime.pipeline.formats.registered_format import RegisteredWriter, shown_row
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.topology.nodes.source_and_sink_nodes import Format


@dataclass(slots=True)
class ProtoWriter(RegisteredWriter):
    """Writes Protobuf; `text` is what is registered."""

    text: str
    kind: MessageType
    indexes: tuple[int, ...]
    _head: bytes | None = None

    def register(self, schemas: Schemas) -> None:
        """See RegisteredWriter."""
        if self._head is None:
            self._head = framed(schemas.id_of(self.subject, self.text, "PROTOBUF"), self.indexes)

    def encode(self, row: Any) -> bytes:
        """See RegisteredWriter."""
        assert self._head is not None
        try:
            return self._head + filled(self.kind, row)
        except UnfitValue as error:
            raise StreamsException(
                f"a {self.part} for the topic {self.topic} does not fit its Protobuf schema: {error}:"
                f" {shown_row(row)}. Nothing of the batch was written; let a step give a value that fits, or make the"
                " field optional"
            ) from error


def proto_writer(topic: str, part: str, format: Format, kind: DataType, path: str) -> ProtoWriter:
    """The writer of a sink's key or value (`part`), which is of the Spark type `kind`; `path` is the sink's field.

    Raises:
        InvalidApplicationException: columns that Protobuf, or the declared schema, does not hold.
    """
    if not isinstance(kind, StructType):
        found = f"protobuf for a {part} that is {kind.simpleString().upper()}, which is no message"
        remedy = "make it a struct with a keyBy: named_struct('name', …), or use another format"
        raise InvalidApplicationException([Mistake(f"{path}.{part}.format", found, remedy)])
    if format.schema is not None:
        made = declared_writer(topic, part, format)
        wrong = misfit(kind, message_class(made.kind).DESCRIPTOR)
        if wrong is not None:
            remedy = "correct the schema, or cast the column in a select before the sink"
            raise InvalidApplicationException([Mistake(f"{path}.{part}.schema", wrong, remedy)])
        return made
    try:
        text = text_of(kind, record_name(topic, part))
    except NotSupportedException as error:
        found, _, remedy = str(error).partition("; ")
        raise InvalidApplicationException([Mistake(f"{path}.{part}.format", found, remedy)]) from error
    problems = parse_proto(text).problems
    if problems:
        remedy = "rename or select columns before the sink, or declare a schema"
        raise InvalidApplicationException([Mistake(f"{path}.{part}.format", problems[0].found, remedy)])
    return declared_writer(topic, part, Format(format.name, text))


def declared_writer(topic: str, part: str, format: Format) -> ProtoWriter:
    """The writer of a schema that stands in the format, without regard to columns."""
    assert format.schema is not None
    schema = parse_proto(format.schema, format.message)
    return ProtoWriter(topic, part, format.schema, message_type(format.schema, format.message), schema.indexes)
