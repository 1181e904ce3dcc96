"""Spark types and Protobuf: the schema that is made of columns, and whether columns fit a declared one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from streams_runtime.errors import NotSupportedException
from streams_runtime.pipeline.formats.protobuf.proto_messages import TIMESTAMP, is_map, is_wrapper, type_shown

_SIMPLE: Mapping[type[DataType], str] = {
    BooleanType: "bool",
    ByteType: "int32",
    ShortType: "int32",
    IntegerType: "int32",
    LongType: "int64",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "bytes",
    TimestampType: TIMESTAMP,
}
# What a column of the type that stands for such a one may be written as. The unsigned ones are read as wider types; a
# number that they do not hold is refused when it is written.
_LONGS = ("int64", "sint64", "sfixed64", "uint32", "fixed32", "uint64", "fixed64")
_WIDER: Mapping[str, tuple[str, ...]] = {
    "int32": ("int32", "sint32", "sfixed32", "double", *_LONGS),
    "int64": _LONGS,
    "float": ("float", "double"),
    "string": ("string", "enum"),
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def text_of(kind: StructType, name: str) -> str:
    """The text of a .proto whose one outermost message has the columns as fields, numbered as they stand.

    Raises:
        NotSupportedException: Protobuf has no such type, or no such name.
    """
    body = list(_message(kind, name, ""))
    imports = ['import "google/protobuf/timestamp.proto";'] if any(TIMESTAMP in each for each in body) else []
    return "\n".join(['syntax = "proto3";', *imports, *body, ""])


def misfit(kind: DataType, message: Descriptor, at: str = "") -> str | None:
    """The first thing for which a column of the type can't be written as the message; None where it can."""
    if not isinstance(kind, StructType):
        return f"{at or 'it'} is {kind.simpleString().upper()}, and a message in the schema"
    for column in kind.fields:
        where = f"{at}.{column.name}" if at else column.name
        field = message.fields_by_name.get(column.name)
        if field is None:
            return f"there is no field for the column {where}"
        found = _misfit(column.dataType, field, where)
        if found is not None:
            return found
    missing = [each.name for each in message.fields if each.is_required and each.name not in kind.fieldNames()]
    return f"there is no column for the required field {missing[0]}{f' of {at}' if at else ''}" if missing else None


def _misfit(kind: DataType, field: FieldDescriptor, at: str) -> str | None:
    if is_map(field):
        if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
            return _misfit_of_one(kind.valueType, field.message_type.fields_by_name["value"], f"{at}{{}}")
    elif field.is_repeated:
        if isinstance(kind, ArrayType):
            return _misfit_of_one(kind.elementType, field, f"{at}[]")
    else:
        return _misfit_of_one(kind, field, at)
    return f"{at} is {kind.simpleString().upper()}, and {type_shown(field)} in the schema"


def _misfit_of_one(kind: DataType, field: FieldDescriptor, at: str) -> str | None:
    message = field.message_type
    if message is not None and is_wrapper(message):
        return _misfit_of_one(kind, message.fields_by_name["value"], at)
    if message is not None and message.full_name != TIMESTAMP and isinstance(kind, StructType):
        return misfit(kind, message, at)
    own = _SIMPLE.get(type(kind))
    name = "enum" if field.enum_type is not None else type_shown(field).removeprefix("repeated ")
    if isinstance(kind, DecimalType):
        fits = kind.scale == 0 and kind.precision <= 20 and name in ("uint64", "fixed64")
    else:
        fits = own is not None and name in _WIDER.get(own, (own,))
    return None if fits else f"{at} is {kind.simpleString().upper()}, and {type_shown(field)} in the schema"


def _message(kind: StructType, name: str, indent: str) -> Iterator[str]:
    yield f"{indent}message {name} {{"
    for number, column in enumerate(kind.fields, 1):
        if not _NAME.fullmatch(column.name):
            raise NotSupportedException(
                f"the column {column.name!r} has a name that Protobuf does not take; rename it in a select, with"
                " letters, digits and _"
            )
        inside = f"{name}_{column.name}"
        inner = _inner(column.dataType)
        if isinstance(inner, StructType):
            yield from _message(inner, inside, f"{indent}  ")
        one = inside if isinstance(inner, StructType) else _named(inner)
        match column.dataType:
            case ArrayType():
                declared = f"repeated {one}"
            case MapType():
                declared = f"map<string, {one}>"
            case _:
                declared = f"optional {one}"
        yield f"{indent}  {declared} {column.name} = {number};"
    yield f"{indent}}}"


def _inner(kind: DataType) -> DataType:
    match kind:
        case ArrayType():
            return kind.elementType
        case MapType() if isinstance(kind.keyType, StringType):
            return kind.valueType
        case _:
            return kind


def _named(kind: DataType) -> str:
    if type(kind) not in _SIMPLE:
        raise NotSupportedException(
            f"Protobuf has no type for {kind.simpleString().upper()} here; cast it to one that it has, such as STRING"
        )
    return _SIMPLE[type(kind)]
