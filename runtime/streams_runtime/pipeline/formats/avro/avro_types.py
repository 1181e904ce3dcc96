"""Spark types and Avro schemas: the schema that is made of columns, and whether columns fit a declared one."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from streams_runtime.api.schemas.avro_schema import without_null
from streams_runtime.errors import NotSupportedException

_SIMPLE: dict[type[DataType], Any] = {
    BooleanType: "boolean",
    ByteType: "int",
    ShortType: "int",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "bytes",
    DateType: {"type": "int", "logicalType": "date"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
# What else a column of such a type may be written as: every value of it has a place there.
_WIDER = {
    "int": ("int", "long", "double"),
    "long": ("long",),
    "float": ("float", "double"),
    "string": ("string", "enum"),
    "bytes": ("bytes", "fixed"),
}
_TIMES = {"timestamp": ("millis", "micros"), "local-timestamp": ("millis", "micros")}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def schema_of(kind: DataType, name: str) -> Any:
    """The Avro schema of a key or a value; every column may be null, which is its default.

    `name` is a record's, made of letters, digits and _; records inside are called after it and their column.

    Raises:
        NotSupportedException: Avro has no such type, or no such name.
    """
    if not isinstance(kind, StructType):
        return _schema(kind, name)
    fields = []
    for column in kind.fields:
        if not _NAME.fullmatch(column.name):
            raise NotSupportedException(
                f"the column {column.name!r} has a name that Avro does not take; rename it in a select, with letters,"
                " digits and _"
            )
        inner = _schema(column.dataType, f"{name}_{column.name}")
        fields.append({"name": column.name, "type": ["null", inner], "default": None})
    return {"type": "record", "name": name, "fields": fields}


def misfit(kind: DataType, document: Any, named: dict[str, Any] | None = None, at: str = "") -> str | None:
    """The first thing for which a column of the type can't be written with the schema, in words; None where it can."""
    named = {} if named is None else named
    document = without_null(document)
    document = named.get(document, document) if isinstance(document, str) else document
    if isinstance(document, dict) and "name" in document:
        named[document["name"]] = document
    name = document["type"] if isinstance(document, dict) else document
    inside = document if isinstance(document, dict) else {}
    match kind:
        case StructType() if name == "record":
            return _fields_misfit(kind, inside, named, at)
        case ArrayType() if name == "array":
            return misfit(kind.elementType, inside["items"], named, f"{at}[]")
        case MapType() if name == "map" and isinstance(kind.keyType, StringType):
            return misfit(kind.valueType, inside["values"], named, f"{at}{{}}")
        case DecimalType() if inside.get("logicalType") == "decimal":
            scale, precision = inside.get("scale", 0), inside["precision"]
            if scale >= kind.scale and precision - scale >= kind.precision - kind.scale:
                return None
        case _ if _fits_simply(kind, name, inside.get("logicalType")):
            return None
    shown = inside.get("logicalType") or name
    return f"{at or 'it'} is {kind.simpleString().upper()}, and {shown} in the schema"


def _fields_misfit(kind: StructType, record: dict[str, Any], named: dict[str, Any], at: str) -> str | None:
    fields = {each["name"]: each for each in record["fields"]}
    for column in kind.fields:
        where = f"{at}.{column.name}" if at else column.name
        if column.name not in fields:
            return f"there is no field for the column {where}"
        found = misfit(column.dataType, fields[column.name]["type"], named, where)
        if found is not None:
            return found
    missing = [name for name, each in fields.items() if "default" not in each and name not in kind.fieldNames()]
    return f"there is no column for the field {missing[0]}{f' of {at}' if at else ''}" if missing else None


def _schema(kind: DataType, name: str) -> Any:
    match kind:
        case StructType():
            return schema_of(kind, name)
        case ArrayType():
            return {"type": "array", "items": ["null", _schema(kind.elementType, name)]}
        case MapType() if isinstance(kind.keyType, StringType):
            return {"type": "map", "values": ["null", _schema(kind.valueType, name)]}
        case DecimalType():
            return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        case _ if type(kind) in _SIMPLE:
            return _SIMPLE[type(kind)]
        case _:
            raise NotSupportedException(
                f"Avro has no type for {kind.simpleString().upper()}; cast it to a type that it has, such as STRING"
            )


def _fits_simply(kind: DataType, name: str, logical: str | None) -> bool:
    own = _SIMPLE.get(type(kind))
    if isinstance(own, dict):
        family, _, unit = str(own["logicalType"]).rpartition("-")
        units = _TIMES.get(family)
        return name == own["type"] and logical in ([f"{family}-{each}" for each in units] if units else [unit])
    if logical is not None and logical != "uuid":
        return False
    return own is not None and name in _WIDER.get(own, (own,))
