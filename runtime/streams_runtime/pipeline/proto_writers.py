"""The messages that Protobuf records were written with: by what stands before the records, each fetched once."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from streams_runtime.api.proto_schema import compiled, messages_in
from streams_runtime.pipeline.avro_ids import Schemas


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A schema of the registry: its files, and the full names of its messages by where they are in it."""

    files: FileDescriptorSet
    messages: dict[tuple[int, ...], str]


class ProtoWriters:
    """Schemas by id. Those that can't be used are asked for anew each time: they may be registered yet."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self.known: dict[int, WrittenFile] = {}

    def problem(self, id: int) -> str | None:
        """Why nothing can be read with the schema `id`; None: it is known now.

        Raises what `Schemas.schema` raises.
        """
        if id in self.known:
            return None
        found = self._schemas.schema(id)
        if found is None:
            return f"the schema registry has no schema {id}, which it was written with"
        if found.kind != "PROTOBUF":
            return f"the schema {id}, which it was written with, is of the type {found.kind} and not PROTOBUF"
        if not found.alone:
            return f"the schema {id}, which it was written with, refers to other subjects, which is not there yet"
        file = _file(found.text)
        if isinstance(file, str):
            return f"the schema {id}, which it was written with, can't be used: {file}"
        self.known[id] = file
        return None


def _file(text: str) -> WrittenFile | str:
    """A schema as the registry has it: the text of a .proto or, from clients in Python, a descriptor in base64."""
    own = _descriptor(text)
    if own is None:
        files, problems = compiled(text)
        if problems:
            return problems[0].found
        own = files.file[-1]
    else:
        try:
            files = FileDescriptorSet(file=[*_imports(own), own])
        except KeyError as error:
            return f"it imports what is not Protobuf's own: {error.args[0]}"
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
