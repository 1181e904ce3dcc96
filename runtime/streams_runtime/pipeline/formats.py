"""Formats inside Spark: bytes to columns, and columns to JSON. Kafka's own serializers, byte for byte."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)

from streams_runtime.errors import NotSupportedException
from streams_runtime.topology.plan import Format

# Microseconds, which Spark's default would cut to milliseconds; UTC prints as Z.
_JSON_WRITE = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
_UNREADABLE = "_unreadable"
_JSON_READ = {"columnNameOfCorruptRecord": _UNREADABLE, "mode": "PERMISSIVE"}
_WIDTH = {"long": 8, "int": 4, "double": 8}


def read_column(data: Column, format: Format) -> tuple[Column, Column]:
    """Column(s) of `data` (bytes) in a format, and whether it can't be read; null bytes are null, and readable.

    A json format gives a struct of its schema's columns, everything else one column.
    """
    if format.name == "json":
        return _read_json(data, format)
    readable = _read_primitive(data, format.name)
    width = _WIDTH.get(format.name)
    broken = F.lit(False) if width is None else data.isNotNull() & (F.length(data) != width)
    return (readable if width is None else F.when(F.length(data) == width, readable)), broken


def write_json(columns: list[Column]) -> Column:
    """Columns as one JSON object, null fields included."""
    return F.to_json(F.struct(*columns), _JSON_WRITE)


def format_of(kind: DataType) -> Format:
    """The format that carries a key of this Spark type.

    Raises:
        NotSupportedException: no format carries it; the message says what to cast to.
    """
    match kind:
        case StringType():
            return Format("string")
        case BinaryType():
            return Format("bytes")
        case LongType():
            return Format("long")
        case IntegerType():
            return Format("int")
        case DoubleType():
            return Format("double")
        case StructType():
            return Format("json", ddl_of(kind))
        case _:
            raise NotSupportedException(
                f"a key of type {kind.simpleString().upper()} has no format; cast it to STRING, BIGINT, INT or DOUBLE"
            )


def ddl_of(schema: StructType) -> str:
    """The schema as Spark DDL."""
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema.fields)


def _read_json(data: Column, format: Format) -> tuple[Column, Column]:
    text = data.cast("string")
    parsed = F.from_json(text, f"{format.schema}, `{_UNREADABLE}` STRING", _JSON_READ)
    # Spark reads an array with one object as that object, and a bare null as no struct at all.
    is_object = F.startswith(F.ltrim(text), F.lit("{"))
    broken = data.isNotNull() & (~is_object | parsed[_UNREADABLE].isNotNull()) & (F.trim(text) != "null")
    return parsed.dropFields(_UNREADABLE), broken


def _read_primitive(data: Column, name: str) -> Column:
    match name:
        case "string":
            return data.cast("string")
        case "bytes":
            return data
        case "long":
            return _signed(data)
        case "int":
            number = _signed(data)
            return F.when(number >= 2**31, number - 2**32).otherwise(number).cast("int")
        case "double":
            # Spark SQL has no function from bits to a double; Java's own does it.
            return F.java_method(F.lit("java.lang.Double"), F.lit("longBitsToDouble"), _signed(data)).cast("double")
        case _:
            raise NotSupportedException(
                f"the format {name} is not there yet; use string, bytes, long, int, double, json"
            )


def _signed(data: Column) -> Column:
    """Up to 8 big-endian bytes as a BIGINT; conv's negative base reads 8 bytes as two's complement."""
    return F.conv(F.hex(data), 16, -10).cast("bigint")
