"""JSON Schemas without Spark: columns, what is refused, values read and written, and schemas of columns."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_kit import DRAFT, INTEGER, STRING, json_object, json_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from streams_runtime.api.flow.known_columns import shown_type
from streams_runtime.api.schemas.json_schema import object_problems, parse_json_schema
from streams_runtime.api.schemas.same_schema import same_schema
from streams_runtime.errors import NotSupportedException, StreamsException
from streams_runtime.pipeline.formats.jsonschema.json_schema_read import (
    JsonSchemaFormat,
    as_written,
    json_writer_schemas,
)
from streams_runtime.pipeline.formats.jsonschema.json_schema_types import misfit, schema_of
from streams_runtime.pipeline.formats.jsonschema.json_schema_values import UnfitJson, values_of
from streams_runtime.pipeline.formats.jsonschema.json_schema_write import JsonSchemaWriter
from streams_runtime.pipeline.formats.schema_ids import id_in, prefix_of
from streams_runtime.state.serdes import SerdeException
from streams_runtime.testing.memory_registry import LocalSchemas

NULL: dict[str, Any] = {"type": "null"}
LINE = json_object(item=STRING)
TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
DAY: dict[str, Any] = {"type": "string", "format": "date"}


def of_x(schema: Any, **more: Any) -> str:
    """An object whose property `x` has the schema; `more` stands beside it."""
    return json.dumps({"$schema": DRAFT, **json_object(x=schema), **more})


@pytest.mark.parametrize(
    ("schema", "ddl"),
    [
        ({"type": "boolean"}, "BOOLEAN"),
        (INTEGER | {"minimum": 0, "title": "n", "default": 5}, "BIGINT"),
        ({"type": "number"}, "DOUBLE"),
        (STRING | {"format": "email", "pattern": "@"}, "STRING"),
        (DAY, "DATE"),
        (TIME, "TIMESTAMP"),
        ({"type": ["null", "string"]}, "STRING"),
        ({"type": ["integer"]}, "BIGINT"),
        ({"enum": ["A", "B", None]}, "STRING"),
        ({"const": True}, "BOOLEAN"),
        (STRING | {"oneOf": [{"minLength": 1}, {"maxLength": 0}]}, "STRING"),
        ({"oneOf": [NULL, TIME]}, "TIMESTAMP"),
        ({"anyOf": [LINE, NULL], "description": "."}, "STRUCT<`item`: STRING>"),
        ({"allOf": [{"$ref": "#/definitions/a~1b"}]}, "STRUCT<`item`: STRING>"),
        ({"$ref": "#/definitions/a%7e1b", "description": "."}, "STRUCT<`item`: STRING>"),
        ({"type": "array", "items": {"oneOf": [NULL, INTEGER]}}, "ARRAY<BIGINT>"),
        (
            {"type": "object", "additionalProperties": {"type": "array", "items": LINE}},
            "MAP<STRING, ARRAY<STRUCT<`item`: STRING>>>",
        ),
        (json_object(**{"_id": INTEGER, "n-of": INTEGER}), "STRUCT<`_id`: BIGINT, `n-of`: BIGINT>"),
    ],
)
def test_properties_are_columns(schema: dict[str, Any], ddl: str) -> None:
    found = parse_json_schema(of_x(schema, definitions={"a/b": LINE}))
    assert found.problems == ()
    assert found.columns is not None
    (column,) = found.columns
    assert column.type is not None
    assert shown_type(column.type) == ddl


_KEYWORDS = [
    "$ref",
    "$id",
    "$schema",
    "$defs",
    "definitions",
    "type",
    "enum",
    "const",
    "properties",
    "items",
    "prefixItems",
    "additionalProperties",
    "patternProperties",
    "required",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "format",
]
NO_TYPE = "a schema that says of no type at #/properties/x"


@pytest.mark.parametrize(
    ("schema", "told", "remedy"),
    [
        ({"type": ["integer", "string"]}, "values of integer, string at #/properties/x", "null and one type"),
        ({"enum": [1, "a"]}, "values of integer, string at #/properties/x", "one type"),
        ({"enum": [[1]]}, "not all of one schema at #/properties/x", '"items"'),
        ({"const": {"a": 1}}, "an object without properties at #/properties/x", '"properties"'),
        ({"$ref": "#/properties"}, "a schema that says of no type at #/properties", "one type"),
        ({"$anchor": "here", "$ref": "#here"}, "a reference to #here, which is no place", "#/$defs/"),
        (STRING | {"pattern": "(a{1000}){1000}{1000}"}, "no JSON Schema: ", "$schema"),
        ({"oneOf": [INTEGER, STRING]}, "oneOf of 2 schemas at #/properties/x", "null and one type"),
        ({"anyOf": [INTEGER, STRING, NULL]}, "anyOf of 3 schemas at #/properties/x", "one type"),
        ({"allOf": [LINE, LINE]}, "allOf of 2 schemas at #/properties/x", "one type"),
        ({"allOf": [LINE, NULL]}, "allOf of 2 schemas at #/properties/x", "one type"),
        (LINE | {"allOf": [LINE]}, "allOf beside type at #/properties/x", "in one of them"),
        ({"oneOf": [NULL, {"oneOf": [INTEGER, STRING]}]}, "at #/properties/x/oneOf/1", "one type"),
        (NULL, "values of null at #/properties/x", "one type"),
        ({}, NO_TYPE, "one type"),
        (True, NO_TYPE, "give it a type"),
        ({"type": "array"}, "not all of one schema at #/properties/x", '"items"'),
        ({"type": "array", "items": [INTEGER, STRING]}, "not all of one schema at #/properties/x", '"items"'),
        ({"type": "object"}, "an object without properties at #/properties/x", '"additionalProperties"'),
        ({"type": "object", "patternProperties": {"^a": INTEGER}}, "an object without properties", '"properties"'),
        ({"$ref": "#"}, "the schema # inside of itself at #/properties/x", "recursive"),
        ({"$ref": "#/$defs/a"}, "the schema #/$defs/a inside of itself at #/$defs/a/properties/b", "recursive"),
        ({"$ref": "#/$defs/a", "type": "object"}, "$ref beside type at #/properties/x", "in one of them"),
        ({"$ref": "#/$defs/no"}, "no JSON Schema: ", "$schema"),
        ({"$ref": "other.json"}, "no JSON Schema: ", "$schema"),
        (LINE | {"$id": "https://shop.test/line"}, "an $id inside of a schema at #/properties/x", "leave it out"),
        ({"type": "strnig"}, "no JSON Schema: ", "$schema"),
        (STRING | {"pattern": "("}, "#/properties/x/pattern", "$schema"),
        (json_object(**{"a`b": STRING}), "a ` in its name at #/properties/x/properties", "leave it out"),
        (json_object(a=STRING, A=STRING), "beside 'a'; Spark takes no notice of case at #/properties/x/prop", "keep"),
    ],
)
def test_what_has_no_type_of_spark_is_refused_with_its_place(schema: Any, told: str, remedy: str) -> None:
    more = {"$schema": "https://json-schema.org/draft/2020-12/schema"} if "$ref" in str(schema) else {}
    found = parse_json_schema(of_x(schema, **more, **{"$defs": {"a": json_object(b={"$ref": "#/$defs/a"})}}))
    assert found.columns is None
    assert any(told in each.found and remedy in each.remedy for each in found.problems), found.problems


_ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["#", "#/$defs/a", "null", "object"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*_KEYWORDS, "a", "`"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(_KEYWORDS), _ANY, max_size=5))
def test_whatever_stands_there_has_columns_or_is_refused(document: dict[str, Any]) -> None:
    found = parse_json_schema(json.dumps({"type": "object", "properties": {"x": {}}} | document))
    assert (found.type is None) is bool(found.problems)
    if found.root is not None and found.type is not None:
        assert shown_type(found.type) == found.root.ddl


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("user STRING", "not JSON"),
        ("[1]", "no object"),
        ("true", "no object"),
        ('{"$schema": "http://json-schema.org/draft-03/schema#", "type": "object"}', "Unknown meta-schema"),
        (json_schema(_key=STRING), "'_key' begins with _"),
        (json_schema(a=STRING, A=STRING), "the column 'A' is there beside 'a'"),
        (json_schema(a=STRING).replace('"object"', '["null", "object"]'), "a value that may be null at #"),
        ("[" * 100_000, "levels in each other"),
        (json_schema(**{f"p{n}": STRING | {"pattern": f"a{n}"} for n in range(201)}), "more than 200 patterns at #"),
        (json_schema(**{f"p{n}": STRING | {"pattern": rf"((?=a)\w{{100}}){{9}}{n}"} for n in range(200)}), "/pattern"),
        (json.dumps({"$defs": {"a": json_object(**{f"p{n}": STRING for n in range(60_000)})}}), "more than"),
    ],
)
def test_what_is_no_schema_of_an_object_says_so(text: str, told: str) -> None:
    (problem,) = parse_json_schema(text).problems
    assert told in problem.found


def test_definitions_that_grow_by_doubling_are_too_many() -> None:
    next_one = [{"$ref": f"#/$defs/d{n + 1}"} for n in range(20)]
    several = {f"d{n}": json_object(a=each, b=each) for n, each in enumerate(next_one)}
    (problem,) = parse_json_schema(of_x({"$ref": "#/$defs/d0"}, **{"$defs": several | {"d20": STRING}})).problems
    assert "definitions written out" in problem.found


@pytest.mark.parametrize(
    ("draft", "takes_points"),
    [
        ("http://json-schema.org/draft-04/schema#", False),
        ("http://json-schema.org/draft-06/schema#", True),
        ("http://json-schema.org/draft-07/schema#", True),
        ("https://json-schema.org/draft/2019-09/schema", True),
        ("https://json-schema.org/draft/2020-12/schema", True),
    ],
)
def test_every_draft_goes_by_its_own_rules(draft: str, takes_points: bool) -> None:
    text = of_x(INTEGER).replace(DRAFT, draft)
    assert parse_json_schema(text).problems == ()
    assert values_of(text).read(b'{"x": 5}') == {"x": 5}
    if takes_points:
        assert values_of(text).read(b'{"x": 5.0}') == {"x": 5}
    else:
        with pytest.raises(UnfitJson, match=r'5\.0 is not of type "integer" at #/x'):
            values_of(text).read(b'{"x": 5.0}')


def test_a_value_is_an_object_and_a_key_may_be_anything() -> None:
    text = json.dumps(STRING)
    found = parse_json_schema(text)
    assert found.type is not None
    assert shown_type(found.type) == "STRING"
    (problem,) = object_problems(found)
    assert "string, which has no columns" in problem.found


@pytest.mark.parametrize(
    ("schema", "value", "read"),
    [
        (INTEGER, "5", 5),
        (INTEGER, "5.0", 5),
        (INTEGER, "1e3", 1000),
        (INTEGER, str(-(2**63)), -(2**63)),
        ({"type": "number"}, "5", 5.0),
        ({"type": "number"}, "18446744073709551616", 2.0**64),
        (DAY, '"2024-02-29"', date(2024, 2, 29)),
        (TIME, '"2024-02-29T12:00:00Z"', datetime(2024, 2, 29, 12, tzinfo=UTC)),
        (TIME, '"2024-02-29t12:00:00.1234567-01:30"', datetime(2024, 2, 29, 13, 30, 0, 123456, tzinfo=UTC)),
        ({"type": ["null", "integer"]}, "null", None),
        ({"type": "array", "items": {"oneOf": [NULL, INTEGER]}}, "[1, null]", [1, None]),
        ({"type": "object", "additionalProperties": TIME}, "{}", {}),
        (LINE, '{"item": "a", "more": 1}', {"item": "a"}),
        (LINE, "{}", {"item": None}),
    ],
)
def test_values_are_read(schema: dict[str, Any], value: str, read: Any) -> None:
    found = values_of(of_x(schema)).read(f'{{"x": {value}}}'.encode())
    assert found == {"x": read}
    assert type(found["x"]) is type(read)


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        (INTEGER, str(2**63), "too large for a BIGINT, at #/x"),
        (INTEGER, "1e300", "whose digits a double does not keep, for a BIGINT at #/x"),
        (INTEGER, "9007199254740993.0", "whose digits a double does not keep, for a BIGINT at #/x"),
        (INTEGER, "5.5", '5.5 is not of type "integer" at #/x'),
        (INTEGER, "null", 'null is not of type "integer" at #/x'),
        ({"type": "number"}, "1e999", "no JSON"),
        (DAY, '"2024-02-30"', "which is no date (2026-01-31), at #/x"),
        (DAY, '"20240229"', "which is no date (2026-01-31), at #/x"),
        (TIME, '"2024-02-29T12:00:00"', "which is no date-time"),
        (TIME, '"2024-02-29T12:00:60Z"', "which is no date-time"),
        (TIME, '"0001-01-01T00:00:00+05:00"', "which is no date-time"),
        ({"type": "array", "items": DAY}, '["2024-02-29", "x"]', "at #/x/1"),
        ({"type": "object", "additionalProperties": DAY}, '{"a/b": "x"}', "at #/x/a~1b"),
        (json_object(in_=DAY), '{"in_": "x"}', "at #/x/in_"),
        (STRING, '"\\ud800"', "no JSON"),
        (STRING, f'"{"a" * 500}', "…"),
    ],
)
def test_values_that_do_not_fit_say_where(schema: dict[str, Any], value: str, told: str) -> None:
    values = values_of(of_x(schema))
    body = f'{{"x": {value}}}'.encode()
    with pytest.raises(UnfitJson) as refused:
        values.read(body)
    assert told in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("column", "schema", "found"),
    [
        (LongType(), INTEGER, None),
        (LongType(), {"type": "number"}, None),
        (LongType(), STRING, "x is BIGINT, and string in the schema"),
        (DoubleType(), INTEGER, "x is DOUBLE, and integer in the schema"),
        (StringType(), DAY, "x is STRING, and date in the schema"),
        (TimestampType(), TIME, None),
        (TimestampType(), STRING, "x is TIMESTAMP, and string in the schema"),
        (DecimalType(5, 2), {"type": "number"}, "x is DECIMAL(5,2), and number in the schema"),
        (ArrayType(StructType([]).add("item", LongType())), {"type": "array", "items": LINE}, "x[].item is BIGINT"),
        (MapType(StringType(), DateType()), {"type": "object", "additionalProperties": DAY}, None),
        (MapType(StringType(), DateType()), {"type": "object", "additionalProperties": TIME}, "x{} is DATE"),
        (MapType(LongType(), DateType()), {"type": "object", "additionalProperties": DAY}, "x is MAP<BIGINT,DATE>"),
        (StructType([]).add("z", LongType()), LINE, "there is no property for the column x.z"),
        (StructType([]), json_object("item", item=STRING), "no column for the required property item of x"),
    ],
)
def test_a_column_fits_a_schema_that_holds_all_its_values(
    column: DataType, schema: dict[str, Any], found: str | None
) -> None:
    root = parse_json_schema(of_x(schema)).root
    assert root is not None
    told = misfit(StructType([]).add("x", column), root)
    assert (told is None) is (found is None)
    assert found is None or found in str(told)


@pytest.mark.parametrize("kind", [BinaryType(), TimestampNTZType(), DecimalType(9, 2), MapType(LongType(), LongType())])
def test_a_column_without_a_type_of_json_schema_is_refused(kind: DataType) -> None:
    with pytest.raises(NotSupportedException, match=r"JSON Schema has no type for .*; cast it"):
        schema_of(StructType([]).add("x", kind), "t")


def writer(text: str) -> tuple[JsonSchemaWriter, LocalSchemas]:
    schemas = LocalSchemas()
    made = JsonSchemaWriter("out", "value", text)
    made.register(schemas)
    return made, schemas


_TIMES = st.datetimes(timezones=st.just(UTC))
_KINDS: list[tuple[DataType, st.SearchStrategy[Any]]] = [
    (BooleanType(), st.booleans()),
    (LongType(), st.integers(-(2**63), 2**63 - 1)),
    (DoubleType(), st.floats(allow_nan=False, allow_infinity=False)),
    (FloatType(), st.floats(allow_nan=False, allow_infinity=False, width=32)),
    (StringType(), st.text(st.characters(exclude_categories=["Cs"]))),
    (DateType(), st.dates()),
    (TimestampType(), _TIMES),
]


def _kinds(depth: int = 2) -> st.SearchStrategy[tuple[DataType, st.SearchStrategy[Any]]]:
    """Types with values of theirs, null among them."""
    if depth == 0:
        return st.sampled_from(_KINDS)
    inner = _kinds(depth - 1)
    arrays = inner.map(lambda each: (ArrayType(each[0]), st.lists(st.none() | each[1], max_size=3)))
    maps = inner.map(
        lambda each: (MapType(StringType(), each[0]), st.dictionaries(st.text(), st.none() | each[1], max_size=3))
    )
    names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="`_"), min_size=1)
    structs = st.dictionaries(names, inner, min_size=1, max_size=3).filter(
        lambda found: len({name.lower() for name in found}) == len(found)
    )
    return st.one_of(st.sampled_from(_KINDS), arrays, maps, structs.map(_struct))


def _struct(fields: dict[str, Any]) -> tuple[DataType, st.SearchStrategy[Any]]:
    kind = StructType([])
    for name, (each, _) in fields.items():
        kind.add(name, each)
    return kind, st.fixed_dictionaries({name: st.none() | values for name, (_, values) in fields.items()})


@given(st.data())
def test_what_is_written_by_a_schema_of_columns_is_read_as_it_was(data: st.DataObject) -> None:
    kind, values = data.draw(_kinds())
    made, schemas = writer(json.dumps(schema_of(StructType([]).add("x", kind), "t")))
    row = {"x": data.draw(st.none() | values)}
    written = made.encode(row)
    assert values_of(made.text).read(written[5:]) == row
    assert made.encode(row) == written
    assert misfit(StructType([]).add("x", kind), _root(made.text)) is None
    assert id_in(written) == schemas.subjects["out-value"][0]


def _root(text: str) -> Any:
    root = parse_json_schema(text).root
    assert root is not None
    return root


def test_rows_of_arrow_are_written() -> None:
    made, schemas = writer(json.dumps(schema_of(StructType([]).add("at", TimestampType()).add("n", LongType()), "t")))
    rows = pa.array([{"at": datetime(2026, 1, 31, tzinfo=UTC), "n": None}, None])
    first, second = made.encoded(rows)
    assert second is None
    assert first is not None
    assert as_written(first, json_writer_schemas(schemas)) == {"at": "2026-01-31T00:00:00.000000Z", "n": None}


def test_a_null_is_left_out_where_the_schema_has_no_place_for_it() -> None:
    made, _ = writer(of_x(STRING))
    assert made.encode({"x": None})[5:] == b"{}"
    made, _ = writer(of_x({"type": ["string", "null"]}))
    assert made.encode({"x": None})[5:] == b'{"x":null}'
    made, _ = writer(json_schema("x", x=STRING))
    with pytest.raises(
        StreamsException, match=r'null is not of type "string" at #/x.*Nothing of the batch was written'
    ):
        made.encode({"x": None})


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_json_has_no_number_for_nan_and_infinity(number: float) -> None:
    made, _ = writer(of_x({"type": "array", "items": {"type": "number"}}))
    with pytest.raises(StreamsException, match="which JSON has no number for, at #/x/1"):
        made.encode({"x": [0.0, number]})


def test_records_are_read_by_the_source_and_shown_as_they_were_written() -> None:
    schemas = LocalSchemas()
    older = schemas.id_of("in-value", of_x(STRING), "JSON")
    other = schemas.id_of("in-value", '"string"')
    declared = JsonSchemaFormat("jsonschema", of_x(DAY), None, json_writer_schemas(schemas))
    day = prefix_of(older) + b'{"x": "2026-01-31", "y": 1}'
    assert declared.decoded(day) == {"x": "2026-01-31"}
    assert declared.unreadable(day) is None
    assert as_written(day, json_writer_schemas(schemas)) == {"x": "2026-01-31", "y": 1}
    for data, told in (
        (prefix_of(older) + b'{"x": "soon"}', f"no date .* it names the schema {older}"),
        (prefix_of(older) + b"{", "no JSON"),
        (prefix_of(other) + b"{}", f"the schema {other}, which it was written with, is of the type AVRO and not JSON"),
        (prefix_of(99) + b"{}", "has no schema 99"),
        (b"\1", "not JSON with the id of its schema: it begins with 01"),
    ):
        with pytest.raises(SerdeException, match=told):
            declared.decoded(data)
    with pytest.raises(SerdeException, match="has no schema 99"):
        as_written(prefix_of(99) + b"{}", json_writer_schemas(schemas))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (json_schema(a=STRING, b=INTEGER), json.dumps(json.loads(json_schema(b=INTEGER, a=STRING)), indent=1), True),
        (of_x(STRING), of_x(STRING | {"title": "T", "description": "D", "$comment": "C", "examples": ["e"]}), True),
        (json_schema(title=STRING), json_schema(description=STRING), False),
        (of_x({"const": 1}), of_x({"const": True}), False),
        (of_x({"enum": ["a"]}), of_x({"enum": ["b"]}), False),
        (of_x({"const": {"title": "a"}}), of_x({"const": {"title": "b"}}), False),
        (of_x(STRING, definitions={"title": STRING}), of_x(STRING), False),
        (of_x(STRING), of_x(STRING | {"maxLength": 5}), False),
        ("nonsense", "nonsense", False),
    ],
)
def test_two_texts_are_one_schema_but_for_comments_and_order(one: str, other: str, same: bool) -> None:
    assert same_schema("JSON", one, other) is same
