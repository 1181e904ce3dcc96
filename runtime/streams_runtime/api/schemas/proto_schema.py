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

from streams_runtime.api.flow.known_columns import Column, Columns, Type, type_named
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.schemas.ddl_schema import name_problems
from streams_runtime.api.spec.limits import DEEPEST, MOST, SHORTEN, TOO_DEEP, TOO_MANY
from streams_runtime.api.sql.sql_tree import Problem

_FILE = "schema.proto"
WELL_KNOWN = "google/protobuf/"
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
    those among the messages inside. `full_name` has the package before the name. `columns` and `type` are None where
    there are problems.
    """

    files: FileDescriptorSet
    message: str
    full_name: str
    indexes: tuple[int, ...]
    columns: Columns | None
    type: Type | None
    problems: tuple[Problem, ...] = ()


def parse_proto(text: str, message: str | None = None) -> ProtoSchema:
    """The schema, with everything that is wrong with it; `message` None: the first one of the file."""
    files, problems = compiled(text)
    found = files.file[-1] if files.file else FileDescriptorProto()
    known = dict(messages_in(found))
    if problems or (problems := list(_of_the_file(found))):
        return _refused(files, problems)
    name = message if message is not None else next(iter(known))
    if name not in known:
        return _refused(files, [Problem(f"there is no message {name!r}", suggestion(name, tuple(known)))])
    indexes, descriptor = known[name]
    walk = _Walk(messages_by_name(files))
    full_name = f"{found.package}.{name}" if found.package else name
    columns = walk.columns(descriptor, f".{full_name}", "")
    if walk.excess is not None:
        return _refused(files, [Problem(f"{walk.excess}, messages written out", SHORTEN)], name, indexes)
    problems = [*walk.problems, *name_problems(tuple(column for column, _ in columns))]
    if problems:
        return _refused(files, problems, name, indexes)
    typed = Columns(tuple(Column(column, type_named(ddl)) for column, ddl in columns))
    return ProtoSchema(files, name, full_name, indexes, typed, type_named(_struct(columns)))


def _of_the_file(file: FileDescriptorProto) -> Iterator[Problem]:
    if file.syntax == "editions":
        yield Problem("an edition", f"use proto3: {_EXAMPLE}")
    if not file.message_type:
        yield Problem("a schema without a message", f"write one: {_EXAMPLE}")


def _refused(
    files: FileDescriptorSet, problems: list[Problem], message: str = "", indexes: tuple[int, ...] = ()
) -> ProtoSchema:
    return ProtoSchema(files, message, message, indexes, None, None, tuple(problems))


@lru_cache(maxsize=1024)  # the operator asks for those of all applications, again and again
def compiled(text: str, imports: bytes = b"") -> tuple[FileDescriptorSet, list[Problem]]:
    """What protoc makes of the text, its imports included and before what needs them; else its mistakes.

    It may import Protobuf's own files, and those of `imports`, a FileDescriptorSet.
    """
    with TemporaryDirectory() as folder:
        source, out = Path(folder, _FILE), Path(folder, "out")
        source.write_bytes(text.encode(errors="replace"))  # half a character, which no file holds
        # The compiler runs in a process of its own: what it says of mistakes it writes to the standard error.
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
        if imports:
            given = Path(folder, "imports")
            given.write_bytes(imports)
            command.append(f"--descriptor_set_in={given}")
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


def messages_in(file: FileDescriptorProto) -> Iterator[tuple[str, tuple[tuple[int, ...], DescriptorProto]]]:
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


def messages_by_name(files: FileDescriptorSet) -> dict[str, DescriptorProto]:
    """All messages by their full names, which begin with a dot, as fields have them."""
    found: dict[str, DescriptorProto] = {}

    def take(name: str, message: DescriptorProto) -> None:
        found[name] = message
        for each in message.nested_type:
            take(f"{name}.{each.name}", each)

    for file in files.file:
        for message in file.message_type:
            take(f".{file.package}.{message.name}" if file.package else f".{message.name}", message)
    return found


def type_shown(field: FieldDescriptorProto) -> str:
    """The type of a field as a .proto has it."""
    name = field.type_name.removeprefix(".") or _F.Type.Name(field.type).removeprefix("TYPE_").lower()
    return f"repeated {name}" if field.label == _F.LABEL_REPEATED else name


def _struct(columns: list[tuple[str, str]]) -> str:
    return f"STRUCT<{', '.join(f'`{name}`: {ddl}' for name, ddl in columns)}>"


@dataclass(slots=True)
class _Walk:
    """From the outside to the inside, with the messages that a field is inside of."""

    messages: Mapping[str, DescriptorProto]
    inside: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    excess: str | None = None
    _count: int = 0

    def columns(self, message: DescriptorProto, name: str, at: str) -> list[tuple[str, str]]:
        """The fields with their Spark types; those without one are among the problems. None where it is too large."""
        self._count += len(message.field)
        if self.excess is not None or len(self.inside) >= DEEPEST or self._count > MOST:
            self.excess = self.excess or (TOO_MANY if self._count > MOST else TOO_DEEP)
            return []
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
            if entry.field[0].type != _F.TYPE_STRING:
                found = f"a map with keys of {type_shown(entry.field[0])}"
                self._refuse(at, found, "use keys of string, or repeated messages of a key and a value")
                return None
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
        if name.startswith(f".{WELL_KNOWN.replace('/', '.')}"):
            self._refuse(at, f"the type {name[1:]}", "use Timestamp, a wrapper, or a message of your own")
            return None
        if name in self.inside:
            self._refuse(at, f"the message {name[1:]} inside of itself", "Spark has no recursive types")
            return None
        columns = self.columns(self.messages[name], name, at)
        return _struct(columns) if columns else None

    def _refuse(self, at: str, found: str, remedy: str) -> None:
        self.problems.append(Problem(f"{found}{f' in the field {at}' if at else ''}", remedy))
