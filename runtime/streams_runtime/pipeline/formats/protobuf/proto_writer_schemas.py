"""The messages that Protobuf records were written with."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from streams_runtime.api.schemas.proto_schema import compiled, messages_in
from streams_runtime.pipeline.formats.schema_ids import Schemas
from streams_runtime.pipeline.formats.writer_schemas import UnusableSchema, WriterSchemas


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A schema of the registry: its files, and the full names of its messages by where they are in it."""

    files: FileDescriptorSet
    messages: dict[tuple[int, ...], str]


ProtoWriterSchemas = WriterSchemas[WrittenFile]


def proto_writer_schemas(schemas: Schemas) -> ProtoWriterSchemas:
    """None is known yet."""
    return WriterSchemas(schemas, "PROTOBUF", _file)


def _file(text: str) -> WrittenFile:
    """A schema as the registry has it: the text of a .proto or, from clients in Python, a descriptor in base64."""
    own = _descriptor(text)
    if own is None:
        files, problems = compiled(text)
        if problems:
            raise UnusableSchema(problems[0].found)
        own = files.file[-1]
    else:
        try:
            files = FileDescriptorSet(file=[*_imports(own), own])
        except KeyError as error:
            raise UnusableSchema(f"it imports what is not Protobuf's own: {error.args[0]}") from error
    package = f"{own.package}." if own.package else ""
    return WrittenFile(files, {indexes: f"{package}{name}" for name, (indexes, _) in messages_in(own)})


def _descriptor(text: str) -> FileDescriptorProto | None:
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


def _imports(file: FileDescriptorProto) -> Iterator[FileDescriptorProto]:
    """Protobuf's own files: others would be references to other subjects."""
    # The runtime knows its own files once their modules are there.
    from google.protobuf import (  # noqa: F401
        any_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )

    known = descriptor_pool.Default()
    for name in file.dependency:
        found = FileDescriptorProto()
        known.FindFileByName(name).CopyToProto(found)
        yield found
