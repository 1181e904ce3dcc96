"""Protobuf inside Spark: Python workers read each record with Protobuf's own runtime, by the source's schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from streams_runtime.api.flow.known_columns import shown_type
from streams_runtime.api.schemas.proto_resolution import mismatches
from streams_runtime.api.schemas.proto_schema import ProtoSchema, messages_by_name, parse_proto
from streams_runtime.pipeline.formats.plain_values import plain
from streams_runtime.pipeline.formats.protobuf.proto_messages import MessageType, UnreadableBody
from streams_runtime.pipeline.formats.protobuf.proto_wire import unframed
from streams_runtime.pipeline.formats.protobuf.proto_writer_schemas import ProtoWriterSchemas
from streams_runtime.pipeline.formats.registered_format import RegisteredFormat
from streams_runtime.pipeline.formats.schema_ids import MAGIC, PREFIX
from streams_runtime.state.serdes import SerdeException


@dataclass(frozen=True, slots=True)
class ProtoFormat(RegisteredFormat):
    """The format of Protobuf that is read.

    `heads` are what stands before records that are known, and why the message that each names can't be read as the
    source's; None where it can.
    """

    writers: ProtoWriterSchemas | None = field(default=None, compare=False, repr=False)
    heads: dict[bytes, str | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def reader(self) -> ProtoSchema:
        """The source's schema."""
        return parse_proto(self.schema or "", self.message)

    @property
    def message_type(self) -> MessageType:
        """The source's message."""
        return message_type(self.schema or "", self.message)

    def parsed(self, data: Column) -> Column:
        """A struct; null for a record that can't be read."""
        kind = self.reader.type
        assert kind is not None
        readable = tuple(head for head, wrong in self.heads.items() if wrong is None)
        made: Any = F.udf(_Parse(self.message_type, readable), DataType.fromDDL(shown_type(kind)), useArrow=False)
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
        rest = data.drop_null()
        for head in self.heads:
            rest = rest.filter(pc.not_equal(pc.binary_slice(rest, 0, len(head)), pa.scalar(head, rest.type)))
        before = len(self.heads)
        for each in rest.to_pylist():
            if not any(each.startswith(head) for head in self.heads):
                self._meet(each)
        return len(self.heads) > before

    def unreadable(self, data: bytes) -> str | None:
        """See RegisteredFormat."""
        found = self._read(data)
        return found if isinstance(found, str) else None

    def decoded(self, data: bytes) -> object:
        """See RegisteredFormat."""
        found = self._read(data)
        if isinstance(found, str):
            raise SerdeException(f"protobuf: {found}")
        return plain(found)

    def _read(self, data: bytes) -> dict[str, Any] | str:
        """The fields of a record; where it can't be read, why, in words that follow "it is"."""
        number, why = self._meet(data)
        if why is not None:
            return why
        found = unframed(data)
        assert found is not None
        try:
            return self.message_type.read(found[2])
        except UnreadableBody as error:
            return f"{error}; it names the schema {number}"

    def _meet(self, data: bytes) -> tuple[int, str | None]:
        """The id before a record, and why nothing can be read that begins so; None where it is known and can."""
        found = unframed(data)
        if found is None:
            begins = f"begins with {data[: PREFIX + 1].hex()}" if data else "has no bytes"
            stands = f"where a {MAGIC.hex()} byte, four of the id and the numbers of the message stand"
            return 0, f"not Protobuf with the id of its schema: it {begins}, {stands}"
        number, indexes, body = found
        head = data[: len(data) - len(body)]
        if head not in self.heads:
            assert self.writers is not None
            problem = self.writers.problem(number)
            if problem is not None:
                return number, f"not to be read: {problem}"
            self.heads[head] = self._mismatch(self.writers, number, indexes)
        return number, self.heads[head]

    def _mismatch(self, writers: ProtoWriterSchemas, number: int, indexes: tuple[int, ...]) -> str | None:
        file = writers.known[number]
        name = file.messages.get(indexes)
        if name is None:
            return f"of the schema {number}, which has no message {'.'.join(map(str, indexes))}, counted from 0"
        ours = messages_by_name(self.reader.files)
        wrong = mismatches(f".{name}", messages_by_name(file.files), f".{self.reader.full_name}", ours)
        problem = f"of the schema {number}, whose {name} can't be read as the source's {self.reader.message}"
        return f"{problem}: {'; '.join(wrong)}" if wrong else None


@lru_cache(maxsize=64)
def message_type(text: str, message: str | None) -> MessageType:
    """The message of a declared schema."""
    schema = parse_proto(text, message)
    return MessageType(schema.files.SerializeToString(deterministic=True), schema.full_name)


def as_written(data: bytes, writers: ProtoWriterSchemas) -> object:
    """A record by the message that it was written with; otherwise as `RegisteredFormat.decoded`."""
    found = unframed(data)
    problem = "no id of a schema before it" if found is None else writers.problem(found[0])
    if found is None or problem is not None:
        raise SerdeException(f"protobuf: {problem}")
    number, indexes, body = found
    file = writers.known[number]
    try:
        return plain(MessageType(file.files.SerializeToString(deterministic=True), file.messages[indexes]).read(body))
    except (UnreadableBody, KeyError) as error:
        raise SerdeException(f"protobuf: {error}") from error


@dataclass(frozen=True, slots=True)
class _Parse:
    """What Spark's workers call with the bytes of each record."""

    kind: MessageType
    heads: tuple[bytes, ...]

    def __call__(self, data: bytearray | None) -> dict[str, Any] | None:
        if data is None:
            return None
        given = bytes(data)
        for head in self.heads:
            if given.startswith(head):
                try:
                    return self.kind.read(given[len(head) :])
                except UnreadableBody:
                    return None  # the batch counts it, and asks for the reason
        return None
