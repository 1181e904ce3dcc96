"""Spark types and JSON Schemas: the schema that is made of columns, and whether columns fit a declared one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
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

from streams_runtime.api.schemas.json_types import JsonType
from streams_runtime.errors import NotSupportedException

DRAFT = "http://json-schema.org/draft-07/schema#"  # what Confluent's serializers write by default
_SIMPLE: Mapping[type[DataType], str] = {
    BooleanType: "boolean",
    ByteType: "integer",
    ShortType: "integer",
    IntegerType: "integer",
    LongType: "integer",
    FloatType: "number",
    DoubleType: "number",
    StringType: "string",
    DateType: "date",
    TimestampType: "date-time",
}
_FORMATS = ("date", "date-time")


def schema_of(kind: DataType, title: str) -> dict[str, Any]:
    """The JSON Schema of a key or a value: of an object each column is null or its type, and there are no others.

    Raises:
        NotSupportedException: JSON Schema has no such type.
    """
    return {"$schema": DRAFT, "title": title, **_schema(kind)}


def misfit(kind: DataType, found: JsonType, at: str = "") -> str | None:
    """The first thing for which a column of the type can't be written as such a value; None where it can."""
    match kind:
        case StructType() if found.name == "object":
            return _fields_misfit(kind, found, at)
        case ArrayType() if found.name == "array" and found.element is not None:
            return misfit(kind.elementType, found.element, f"{at}[]")
        case MapType() if found.name == "map" and found.element is not None and isinstance(kind.keyType, StringType):
            return misfit(kind.valueType, found.element, f"{at}{{}}")
        case _:
            own = _SIMPLE.get(type(kind))
            if own == found.name or (own == "integer" and found.name == "number"):
                return None
    return f"{at or 'it'} is {kind.simpleString().upper()}, and {found.name} in the schema"


def _fields_misfit(kind: StructType, found: JsonType, at: str) -> str | None:
    for column in kind.fields:
        where = f"{at}.{column.name}" if at else column.name
        if column.name not in found.fields:
            return f"there is no property for the column {where}"
        wrong = misfit(column.dataType, found.fields[column.name], where)
        if wrong is not None:
            return wrong
    missing = sorted(found.required - set(kind.fieldNames()))
    return f"there is no column for the required property {missing[0]}{f' of {at}' if at else ''}" if missing else None


def _schema(kind: DataType) -> dict[str, Any]:
    match kind:
        case StructType():
            properties = {each.name: _or_null(each.dataType) for each in kind.fields}
            return {"type": "object", "properties": properties, "additionalProperties": False}
        case ArrayType():
            return {"type": "array", "items": _or_null(kind.elementType)}
        case MapType() if isinstance(kind.keyType, StringType):
            return {"type": "object", "additionalProperties": _or_null(kind.valueType)}
        case _ if type(kind) in _SIMPLE:
            name = _SIMPLE[type(kind)]
            return {"type": "string", "format": name} if name in _FORMATS else {"type": name}
        case _:
            raise NotSupportedException(
                f"JSON Schema has no type for {kind.simpleString().upper()} here; cast it to one that it has, such as"
                " STRING or DOUBLE"
            )


def _or_null(kind: DataType) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, _schema(kind)]}
