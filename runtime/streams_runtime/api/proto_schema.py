"""Protobuf schemas as a user declares them: the text of a .proto to columns, without Spark and without a registry."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from streams_runtime.api.columns import Column, Columns, Type, type_named
from streams_runtime.api.ddl import name_problems
from streams_runtime.api.mistakes import suggestion
from streams_runtime.api.sql import Problem

_FILE = "schema.proto"
_WELL_KNOWN = "google/protobuf/"
_F = FieldDescriptorProto
_SIMPLE: Mapping[int, str] = {
    _F.TYPE_DOUBLE: "DOUBLE",
    _F.TYPE_FLOAT: "FLOAT",
    _F.TYPE_INT32: "INT",
    _F.TYPE_SINT32: "INT",
    _F.TYPE_SFIXED32: "INT",
    _F.TYPE_UINT32: "BIGINT",
    _F.TYPE_FIXED32: "BIGINT",
    _F.TYPE_INT64: "BIGINT",
    _F.TYPE_SINT64: "BIGINT",
    _F.TYPE_SFIXED64: "BIGINT",
    _F.TYPE_UINT64: "DECIMAL(20, 0)",
    _F.TYPE_FIXED64: "DECIMAL(20, 0)",
    _F.TYPE_BOOL: "BOOLEAN",
    _F.TYPE_STRING: "STRING",
    _F.TYPE_BYTES: "BINARY",
    _F.TYPE_ENUM: "STRING",
}
_MESSAGES: Mapping[str, str] = {
    ".google.protobuf.Timestamp": "TIMESTAMP",
    ".google.protobuf.DoubleValue": "DOUBLE",
    ".google.protobuf.FloatValue": "FLOAT",
    ".google.protobuf.Int64Value": "BIGINT",
    ".google.protobuf.UInt64Value": "DECIMAL(20, 0)",
    ".google.protobuf.Int32Value": "INT",
    ".google.protobuf.UInt32Value": "BIGINT",
    ".google.protobuf.BoolValue": "BOOLEAN",
    ".google.protobuf.StringValue": "STRING",
    ".google.protobuf.BytesValue": "BINARY",
}
_EXAMPLE = 'syntax = "proto3"; message Order { string user = 1; double amount = 2; }'
_WRITE = f"write messages: {_EXAMPLE}"
_SAID = re.compile(rf"{re.escape(_FILE)}:(\d+):(\d+): (.*)")


@dataclass(frozen=True, slots=True)
class ProtoSchema:
    """A declared schema: its descriptors, the message in it that is read, and the columns that are its fields.

    `indexes` say where the message is in the file, as they stand before a record: its number among the messages, then
    those among the messages inside. `columns` and `type` are None where there are problems.
    """

    files: FileDescriptorSet
    message: str
    indexes: tuple[int, ...]
    columns: Columns | None
    type: Type | None
    problems: tuple[Problem, ...] = ()


def parse_proto(text: str, message: str | None = None) -> ProtoSchema:
    """The schema, with everything that is wrong with it; `message` None: the first one of the file."""
    files, problems = _compiled(text)
    found = next((each for each in files.file if each.name == _FILE), None)
    if problems or found is None:
        return _refused(files, problems)
    imports = [each for each in found.dependency if not each.startswith(_WELL_KNOWN)]
    if imports:
        return _refused(files, [Problem(f"the import {imports[0]!r}", "put its messages into the schema itself")])
    known = dict(_messages(found))
    if not known:
        return _refused(files, [Problem("a schema without a message", f"write one: {_EXAMPLE}")])
    name = message if message is not None else next(iter(known))
    if name not in known:
        return _refused(files, [Problem(f"there is no message {name!r}", suggestion(name, tuple(known)))])
    indexes, descriptor = known[name]
    walk = _Walk(_by_full_name(files))
    package = f".{found.package}" if found.package else ""
    columns = walk.columns(descriptor, f"{package}.{name}", "")
    problems = [*walk.problems, *name_problems(tuple(column for column, _ in columns))]
    if problems:
        return _refused(files, problems, name, indexes)
    typed = Columns(tuple(Column(column, type_named(ddl)) for column, ddl in columns))
    return ProtoSchema(files, name, indexes, typed, type_named(_struct(columns)))


def _refused(
    files: FileDescriptorSet, problems: list[Problem], message: str = "", indexes: tuple[int, ...] = ()
) -> ProtoSchema:
    return ProtoSchema(files, message, indexes, None, None, tuple(problems))


@lru_cache(maxsize=64)
def _compiled(text: str) -> tuple[FileDescriptorSet, list[Problem]]:
    """What protoc makes of the text, well-known types included."""
    with TemporaryDirectory() as folder:
        source, out = Path(folder, _FILE), Path(folder, "out")
        source.write_text(text)
        # The compiler runs in a process of its own: what it says of mistakes it writes to the standard error.
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
        done = subprocess.run(
            [*command, f"--descriptor_set_out={out}", _FILE], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            return FileDescriptorSet(), _said(done.stderr)
        return FileDescriptorSet.FromString(out.read_bytes()), []


def _said(errors: str) -> list[Problem]:
    """The compiler's mistakes with their places; it writes other lines too."""
    found = [
        Problem(f"no Protobuf schema: at line {line}, character {character}: {what.rstrip('.')}", _WRITE)
        for line, character, what in _SAID.findall(errors)
    ]
    return found or [Problem(f"no Protobuf schema: {' '.join(errors.split())[-300:]}", _WRITE)]


def _messages(file: FileDescriptorProto) -> Iterator[tuple[str, tuple[tuple[int, ...], DescriptorProto]]]:
    """The file's messages and those inside of them, by their names without the package."""

    def inside(
        name: str, indexes: tuple[int, ...], found: DescriptorProto
    ) -> Iterator[tuple[str, tuple[tuple[int, ...], DescriptorProto]]]:
        yield name, (indexes, found)
        for number, each in enumerate(found.nested_type):
            if not each.options.map_entry:
                yield from inside(f"{name}.{each.name}", (*indexes, number), each)

    for number, each in enumerate(file.message_type):
        yield from inside(each.name, (number,), each)


def _by_full_name(files: FileDescriptorSet) -> dict[str, DescriptorProto]:
    found: dict[str, DescriptorProto] = {}

    def take(name: str, message: DescriptorProto) -> None:
        found[name] = message
        for each in message.nested_type:
            take(f"{name}.{each.name}", each)

    for file in files.file:
        for message in file.message_type:
            take(f".{file.package}.{message.name}" if file.package else f".{message.name}", message)
    return found


def _struct(columns: list[tuple[str, str]]) -> str:
    return f"STRUCT<{', '.join(f'`{name}`: {ddl}' for name, ddl in columns)}>"


@dataclass(slots=True)
class _Walk:
    """From the outside to the inside, with the messages that a field is inside of."""

    messages: Mapping[str, DescriptorProto]
    inside: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def columns(self, message: DescriptorProto, name: str, at: str) -> list[tuple[str, str]]:
        """The fields with their Spark types; those without one are among the problems."""
        self.inside.append(name)
        found = []
        for each in message.field:
            ddl = self._field(each, f"{at}.{each.name}" if at else each.name)
            if ddl is not None:
                found.append((each.name, ddl))
        self.inside.pop()
        if not message.field:
            self._refuse(at, f"the message {name.removeprefix('.')} without fields", "give it at least one")
        return found

    def _field(self, given: FieldDescriptorProto, at: str) -> str | None:
        entry = self.messages.get(given.type_name) if given.type == _F.TYPE_MESSAGE else None
        if entry is not None and entry.options.map_entry:
            key, value = (self._one(each, f"{at}{{}}") for each in entry.field)
            return None if key is None or value is None else f"MAP<{key}, {value}>"
        inner = self._one(given, at)
        return f"ARRAY<{inner}>" if inner is not None and given.label == _F.LABEL_REPEATED else inner

    def _one(self, given: FieldDescriptorProto, at: str) -> str | None:
        if given.type == _F.TYPE_GROUP:
            self._refuse(at, "a group", "use a message")
            return None
        if given.type != _F.TYPE_MESSAGE:
            return _SIMPLE[given.type]
        name = given.type_name
        if name in _MESSAGES:
            return _MESSAGES[name]
        if name.startswith(f".{_WELL_KNOWN.replace('/', '.')}"):
            self._refuse(at, f"the type {name[1:]}", "use Timestamp, a wrapper, or a message of your own")
            return None
        if name in self.inside:
            self._refuse(at, f"the message {name[1:]} inside of itself", "Spark has no recursive types")
            return None
        columns = self.columns(self.messages[name], name, at)
        return _struct(columns) if columns else None

    def _refuse(self, at: str, found: str, remedy: str) -> None:
        self.problems.append(Problem(f"{found}{f' in the field {at}' if at else ''}", remedy))
