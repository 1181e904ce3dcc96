"""The messages that Protobuf records were written with."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from streams_runtime.api.schemas.proto_schema import WELL_KNOWN, compiled, messages_in
from streams_runtime.api.schemas.same_schema import descriptor_in
from streams_runtime.kafka.schema_registry import FoundSchema
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


def _file(found: FoundSchema) -> WrittenFile:
    """A schema as the registry has it, with the files that it imports from other subjects, by their names."""
    known: dict[str, FileDescriptorProto] = {}
    for each in found.needs:
        if not each.name.startswith(WELL_KNOWN):
            known[each.name] = _with_imports(each.text, known, each.name)
    own = _with_imports(found.text, known)
    files = FileDescriptorSet(file=[*known.values(), own])
    package = f"{own.package}." if own.package else ""
    return WrittenFile(files, {indexes: f"{package}{name}" for name, (indexes, _) in messages_in(own)})


def _with_imports(text: str, known: dict[str, FileDescriptorProto], name: str | None = None) -> FileDescriptorProto:
    """One file: the text of a .proto or, from clients in Python, a descriptor in base64.

    Those of Protobuf's own that it imports are added to `known`.
    """
    own = descriptor_in(text)
    if own is None:
        files, problems = compiled(text, FileDescriptorSet(file=known.values()).SerializeToString(deterministic=True))
        if problems:
            raise UnusableSchema(problems[0].found)
        *before, own = files.file
        for each in before:
            known.setdefault(each.name, each)
    else:
        try:
            for each in _imports(own, known):
                known.setdefault(each.name, each)
        except KeyError as error:
            raise UnusableSchema(f"it imports what is not Protobuf's own: {error.args[0]}") from error
    if name is not None:
        own.name = name
    return own


def _imports(file: FileDescriptorProto, known: Container[str]) -> Iterator[FileDescriptorProto]:
    """Protobuf's own files: others are references to other subjects, which are known."""
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

    pool = descriptor_pool.Default()
    for name in file.dependency:
        if name not in known:
            found = FileDescriptorProto()
            pool.FindFileByName(name).CopyToProto(found)
            yield found
