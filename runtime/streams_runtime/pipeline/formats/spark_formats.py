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
from streams_runtime.pipeline.formats.fitting_values import NUMBERS, TIMES, fits
from streams_runtime.pipeline.formats.registered_format import RegisteredFormat
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

# Microseconds, which Spark's default would cut to milliseconds; UTC prints as Z.
_JSON_WRITE = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}
_UNREADABLE = "_unreadable"
# Single quotes are no JSON; Spark would take them, and what reads the same topic beside it would not.
_JSON_READ = {"columnNameOfCorruptRecord": _UNREADABLE, "mode": "PERMISSIVE", "allowSingleQuotes": "false"}
# NaN and infinity are no numbers of JSON (RFC 8259, section 6), and neither are texts.
_STRICT = {"allowNonNumericNumbers": "false"}
_WIDTH = {"long": 8, "int": 4, "double": 8}


def parsed(data: Column, format: Format, strict: bool = False) -> Column:
    """`data` (bytes) as the format has it; of json and avro a struct with one field more, for what can't be read.

    Parsing is dear: give the result a projection of its own, so that Spark does it once for all that is asked of it
    (`is_broken`, `content`). `strict`: a column of numbers takes no NaN and no infinity, which the application's own
    JSON has as texts (`write_json`).
    """
    if isinstance(format, RegisteredFormat):
        return format.parsed(data)
    if format.name == "json":
        options = _JSON_READ | (_STRICT if strict else {})
        return F.from_json(data.cast("string"), f"{format.schema}, `{_UNREADABLE}` STRING", options)
    width = _WIDTH.get(format.name)
    readable = _read_primitive(data, format.name)
    return readable if width is None else F.when(F.length(data) == width, readable)


def is_broken(data: Column, parsed: Column, format: Format, strict: bool = False) -> Column:
    """Whether `data` can't be read; null bytes can, and so can the JSON document `null`.

    `strict`: as for `parsed`; then a number that is too large for its column, or a time outside of the years 1 to 9999,
    can't be read either.
    """
    if isinstance(format, RegisteredFormat):
        return format.is_unreadable(data, parsed)
    if format.name == "string":
        return data.isNotNull() & ~F.is_valid_utf8(data.cast("string"))
    if format.name == "json":
        text = data.cast("string")
        # Spark reads an array with one object in it as that object.
        is_array = F.startswith(F.ltrim(text), F.lit("["))
        unfit = parsed.isNull() | parsed[_UNREADABLE].isNotNull() | is_array | ~F.is_valid_utf8(text)
        if strict:
            fitting = fits(parsed, StructType.fromDDL(format.schema or ""), NUMBERS | TIMES)
            unfit = unfit if fitting is None else unfit | ~fitting
        return ~is_null(data, format) & unfit
    width = _WIDTH.get(format.name)
    return F.lit(False) if width is None else data.isNotNull() & (F.length(data) != width)


def is_null(data: Column, format: Format) -> Column:
    """Whether `data` stands for no value at all: null bytes, or the JSON document `null`."""
    nothing = data.isNull()
    return nothing | (data == F.lit(bytearray(b"null"))) if format.name == "json" else nothing


def content(parsed: Column, format: Format) -> Column:
    """The value itself: of formats with columns, the struct of the declared columns."""
    if isinstance(format, RegisteredFormat):
        return format.content(parsed)
    if format.name != "json":
        return parsed
    return F.when(parsed[_UNREADABLE].isNull(), parsed.dropFields(_UNREADABLE))


def write_json(columns: list[Column]) -> Column:
    """Columns as one JSON object, null fields included; NaN and infinities as texts (batch.json_columns)."""
    return F.to_json(F.struct(*columns), _JSON_WRITE)


def format_of(kind: DataType) -> Format:
    """The format that carries a key, or a single column, of this Spark type.

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
                f"no format carries the type {kind.simpleString().upper()}; cast it to STRING, BIGINT, INT or DOUBLE"
            )


def ddl_of(schema: StructType) -> str:
    """The schema as Spark DDL."""
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema.fields)


def _read_primitive(data: Column, name: str) -> Column:
    match name:
        case "string":
            # What a store has from elsewhere is read as Kafka's StringDeserializer reads it.
            return F.make_valid_utf8(data.cast("string"))
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
