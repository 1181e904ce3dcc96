"""Avro schemas without Spark: columns, what Avro's rules let one schema read of another, and schemas of columns."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from avro_kit import TIME, field, record
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from streams_runtime.api.flow.known_columns import shown_type
from streams_runtime.api.schemas.avro_resolution import mismatches
from streams_runtime.api.schemas.avro_schema import parse_avro
from streams_runtime.pipeline.formats.avro.avro_types import misfit, schema_of
from streams_runtime.pipeline.formats.avro.avro_values import decoded
from streams_runtime.pipeline.formats.avro.avro_write import AvroWriter
from streams_runtime.pipeline.formats.avro.avro_writer_schemas import avro_writer_schemas
from streams_runtime.pipeline.formats.schema_ids import id_in, prefix_of
from streams_runtime.testing.memory_registry import LocalSchemas

INNER = {"type": "record", "name": "Inner", "fields": [field("x", "int")]}


def test_a_schemas_fields_are_columns() -> None:
    schema = record("A", field("a", ["null", "long"]), field("at", TIME), field("in", INNER), field("same", "Inner"))
    columns = parse_avro(schema).columns
    assert columns is not None
    shown = {each.name: shown_type(each.type) for each in columns if each.type is not None}
    assert shown == {
        "a": "BIGINT",
        "at": "TIMESTAMP",
        "in": "STRUCT<`x`: INT>",
        "same": "STRUCT<`x`: INT>",
    }


@pytest.mark.parametrize(
    ("schema", "told", "remedy"),
    [
        ('{"type": "record", "fields": []}', "not an Avro schema: ", '"record"'),
        (record("A", field("a", "null")), "the type null in the field a", "a type that has values"),
        (json.dumps(["null", "string"]), "a union with null", "leave null out"),
        (record("A", field("a", ["int", "string"])), "a union of int, string in the field a", "one type"),
        (record("A", field("a", {**INNER, "fields": []})), "the record Inner without fields in the field a", "one"),
        (record("A", field("a b", "int")), "the name 'a b'", "letters"),
        (record("A", field("a", {"type": "array", "items": "A"})), "the record A inside of itself", "recursive"),
    ],
)
def test_what_is_wrong_with_a_schema_is_told(schema: str, told: str, remedy: str) -> None:
    (problem,) = parse_avro(schema).problems
    assert told in problem.found
    assert remedy in problem.remedy


@pytest.mark.parametrize(
    ("writer", "reader", "found"),
    [
        (("int",), ("long",), None),
        (("int",), (["null", "double"],), None),
        (("long",), ("int",), "the field a was written as long and is read as int"),
        ((["null", "int"],), ("int",), "the field a was written as null or int and is read as int"),
        ((INNER,), ({**INNER, "fields": [field("y", "int")]},), "the field a.y is not in the data, and has no default"),
        ((INNER,), ({**INNER, "fields": [field("y", "int", default=0)]},), None),
        (
            (INNER,),
            ({**INNER, "fields": [field("x", "string")]},),
            "the field a.x was written as int and is read as string",
        ),
        ((INNER,), ({**INNER, "fields": [field("z", "long", aliases=["x"])]},), None),
        (
            ({"type": "array", "items": "int"},),
            ({"type": "array", "items": "string"},),
            "the field a was written as array and is read as array",
        ),
    ],
)
def test_what_one_schema_can_not_read_of_another_is_told_with_its_field(
    writer: tuple[Any], reader: tuple[Any], found: str | None
) -> None:
    told = mismatches(record("Writer", field("a", *writer)), record("Reader", field("a", *reader)))
    assert told == ([] if found is None else [found])


@pytest.mark.parametrize(
    ("column", "kind", "found"),
    [
        (IntegerType(), "long", None),
        (IntegerType(), ["null", "int"], None),
        (LongType(), "int", "c is BIGINT, and int in the schema"),
        (StringType(), {"type": "enum", "name": "E", "symbols": ["A"]}, None),
        (TimestampType(), TIME, None),
        (TimestampType(), "long", "c is TIMESTAMP, and long in the schema"),
        (LongType(), TIME, "c is BIGINT, and timestamp-millis in the schema"),
        (DecimalType(5, 2), {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, None),
        (
            DecimalType(5, 3),
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "c is DECIMAL(5,3), and decimal in the schema",
        ),
        (
            ArrayType(StructType([]).add("x", StringType())),
            {"type": "array", "items": INNER},
            "c[].x is STRING, and int in the schema",
        ),
        (StructType([]).add("z", IntegerType()), INNER, "there is no field for the column c.z"),
    ],
)
def test_a_column_fits_a_schema_that_holds_all_its_values(column: DataType, kind: Any, found: str | None) -> None:
    columns = StructType([]).add("c", column)
    assert misfit(columns, json.loads(record("A", field("c", kind)))) == found


@pytest.mark.parametrize(
    "column",
    [
        IntegerType(),
        StringType(),
        TimestampType(),
        DateType(),
        DecimalType(7, 1),
        MapType(StringType(), ArrayType(DoubleType())),
    ],
)
def test_a_schema_that_is_made_of_columns_holds_them(column: DataType) -> None:
    columns = StructType([]).add("c", column)
    made = schema_of(columns, "out_value")
    assert made["fields"][0]["default"] is None
    assert misfit(columns, made) is None
    assert parse_avro(json.dumps(made)).problems == ()


def test_ids_stand_before_the_body_as_kafkas_serializer_puts_them() -> None:
    assert prefix_of(258) == b"\x00\x00\x00\x01\x02"
    assert id_in(b"\x00\x00\x00\x01\x02rest") == 258
    assert id_in(b"\x01\x00\x00\x01\x02") is None
    assert id_in(b"\x00\x00\x00\x01") is None


def test_each_schema_is_asked_for_once_and_one_that_is_not_there_each_time() -> None:
    schemas, asked = LocalSchemas(), []
    text = record("A", field("a", "int"))

    class Counting(LocalSchemas):
        def schema(self, id: int) -> Any:
            asked.append(id)
            return schemas.schema(id)

    writers = avro_writer_schemas(Counting())
    data = pa.array([prefix_of(1) + b"\x02", None, b"{}", prefix_of(1)])
    assert not writers.learn(data)
    schemas.id_of("a-value", text)
    assert writers.learn(data)
    assert not writers.learn(data)
    assert decoded(prefix_of(1) + b"\x02", None, writers) == {"a": 1}
    assert asked == [1, 1]


def test_a_value_that_does_not_fit_names_its_field() -> None:
    writer = AvroWriter("out", "value", json.loads(record("A", field("a", "int"), field("in", INNER))))
    writer.register(LocalSchemas())
    with pytest.raises(Exception, match=r"a value for the topic out does not fit its Avro schema.*Inner.x is <no>"):
        writer.encode({"a": 1, "in": {"x": "no"}})


def test_a_writers_schema_that_is_nested_too_deeply_is_named_as_unusable() -> None:
    schemas = LocalSchemas()
    for text in ("[" * 50_000, '{"type":"array","items":' * 100 + '"int"' + "}" * 100, "no JSON"):
        assert "can't be used: " in str(avro_writer_schemas(schemas).problem(schemas.id_of(text, text)))
