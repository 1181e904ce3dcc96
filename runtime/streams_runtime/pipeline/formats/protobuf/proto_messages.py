"""Protobuf messages and the columns that are their fields: read by Protobuf's own runtime, in any process.

One reading serves Spark's workers, queries and the words for a record that can't be read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

Read = Callable[[Any], Any]

TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = "google/protobuf/wrappers.proto"
_UNSIGNED_LONG = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)


class UnreadableBody(ValueError):
    """Bytes that are none of the message; the text follows "it is"."""


@dataclass(frozen=True, slots=True)
class MessageType:
    """A message by its full name, and the files (a serialized FileDescriptorSet) that it is in; it can be pickled."""

    files: bytes
    name: str

    def read(self, body: bytes) -> dict[str, Any]:
        """The fields as Spark's Python types: times aware, unsigned 64-bit numbers as Decimals, enums by their names.

        Raises:
            UnreadableBody: the bytes are damaged, or of another type.
        """
        made, read = _reader(self)
        message = made()
        try:
            message.ParseFromString(body)
        except DecodeError as error:
            raise UnreadableBody(f"damaged: {error}") from error
        if not message.IsInitialized():
            missing = ", ".join(message.FindInitializationErrors())
            raise UnreadableBody(f"without the required fields {missing}")
        try:
            found: dict[str, Any] = read(message)
        except UnicodeDecodeError as error:  # only of a map of proto2
            raise UnreadableBody("damaged: the key of a map is not UTF-8") from error
        return found


@lru_cache(maxsize=256)
def message_class(kind: MessageType) -> type[Message]:
    """The runtime's class of a message."""
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(kind.files).file:
        pool.Add(file)
    made: type[Message] = GetMessageClass(pool.FindMessageTypeByName(kind.name))
    return made


def is_wrapper(message: Descriptor) -> bool:
    """Whether a message is one of Protobuf's own around a single value, such as Int32Value."""
    return str(message.file.name) == _WRAPPERS


@lru_cache(maxsize=256)
def _reader(kind: MessageType) -> tuple[type[Message], Read]:
    made = message_class(kind)
    return made, _message(made.DESCRIPTOR, "")


def _message(message: Descriptor, at: str) -> Read:
    numbers = {each.number: each for each in message.fields}

    @cache
    def fields() -> list[tuple[str, Read]]:
        # With the first message: one may be inside of itself.
        return [(each.name, _field(each, f"{at}.{each.name}" if at else each.name)) for each in message.fields]

    def read(given: Message) -> dict[str, Any]:
        # The runtime keeps what has another type than its field among the unknown, and would give the default.
        for stray in UnknownFieldSet(given):
            if (field := numbers.get(stray.field_number)) is not None:
                where = f"{at}.{field.name}" if at else field.name
                raise UnreadableBody(f"of another type in the field {where}, or has a number there that its enum lacks")
        return {name: read_field(given) for name, read_field in fields()}

    return read


def _field(field: FieldDescriptor, at: str) -> Read:
    name = field.name
    if is_map(field):
        entry = _one(field.message_type.fields_by_name["value"], f"{at}{{}}")
        return lambda given: {key: entry(value) for key, value in getattr(given, name).items()}
    one = _one(field, at)
    if field.is_repeated:
        return lambda given: [one(each) for each in getattr(given, name)]
    if field.has_presence and not field.has_default_value:
        return lambda given: one(getattr(given, name)) if given.HasField(name) else None
    return lambda given: one(getattr(given, name))


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map, which is repeated messages of a key and a value on the wire."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def type_shown(field: FieldDescriptor) -> str:
    """The type of a field as a .proto has it."""
    named = field.message_type or field.enum_type
    name = (
        FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower() if named is None else named.full_name
    )
    return f"repeated {name}" if field.is_repeated else name


def _one(field: FieldDescriptor, at: str) -> Read:
    if field.type in _UNSIGNED_LONG:
        return Decimal
    if field.type == FieldDescriptor.TYPE_ENUM:
        return _enum(field.enum_type)
    if field.type != FieldDescriptor.TYPE_MESSAGE:
        return (lambda value: _text(value, at)) if field.type == FieldDescriptor.TYPE_STRING else lambda value: value
    if field.message_type.full_name == TIMESTAMP:
        return lambda value: _time(value, at)
    if is_wrapper(field.message_type):
        inner = _one(field.message_type.fields_by_name["value"], at)
        return lambda value: inner(value.value)
    return _message(field.message_type, at)


def _enum(kind: EnumDescriptor) -> Read:
    names = {number: each.name for number, each in kind.values_by_number.items()}
    return lambda number: names.get(number) or str(number)


def _text(value: Any, at: str) -> Any:
    # The runtime gives bytes for a text of proto2 that is not UTF-8; one of proto3 it refuses by itself.
    if isinstance(value, bytes):
        raise UnreadableBody(f"damaged: the field {at} is not UTF-8")
    return value


def _time(value: Any, at: str) -> Any:
    try:
        return value.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UnreadableBody(f"damaged: the field {at} is no time ({error})") from error
