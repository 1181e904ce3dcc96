"""Protobuf without Spark: what one message lets be read of another, rows into messages and back, writers' schemas."""

from __future__ import annotations

import base64
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from example_counts import examples
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given, settings
from hypothesis import strategies as st
from proto_kit import HEAD, ORDER, proto
from pyspark.sql.types import ArrayType, DataType, DateType, DecimalType, LongType, StringType, StructType

from streams_runtime.api.schemas.proto_resolution import mismatches
from streams_runtime.api.schemas.proto_schema import messages_by_name, parse_proto
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.pipeline.formats.protobuf.proto_fill import UnfitValue, filled
from streams_runtime.pipeline.formats.protobuf.proto_messages import UnreadableBody
from streams_runtime.pipeline.formats.protobuf.proto_read import ProtoFormat, as_written, message_type
from streams_runtime.pipeline.formats.protobuf.proto_wire import framed, unframed
from streams_runtime.pipeline.formats.protobuf.proto_write import proto_writer
from streams_runtime.pipeline.formats.protobuf.proto_writer_schemas import proto_writer_schemas
from streams_runtime.testing.memory_registry import LocalSchemas
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

INSIDE = f"{HEAD} message Order {{ Line a = 1; }} message Line {{ %s; }}"


@pytest.mark.parametrize(
    ("writer", "reader", "found"),
    [
        (proto("int32 a = 1"), proto("int64 b = 1"), None),
        (proto("int64 a = 1"), proto("int32 a = 1"), "the field a was written as int64 and is read as int32"),
        (proto("sint32 a = 1"), proto("int32 a = 1"), "the field a was written as sint32 and is read as int32"),
        (proto("int32 a = 1"), proto("repeated int64 a = 1"), None),
        (proto("repeated int32 a = 1"), proto("int32 a = 1"), "written as repeated int32 and is read as int32"),
        (proto("int32 b = 2"), proto("string a = 1"), None),
        (INSIDE % "int32 x = 1", INSIDE % "int64 x = 1; string y = 2", None),
        (INSIDE % "int32 x = 1", INSIDE % "string x = 1", "the field a.x was written as int32 and is read as string"),
        (
            proto("int32 b = 2"),
            'syntax = "proto2"; package shop; message Order { required string a = 1; }',
            "the field a is required, and not in the data",
        ),
    ],
)
def test_what_one_message_can_not_read_of_another_is_told_with_its_field(
    writer: str, reader: str, found: str | None
) -> None:
    theirs, ours = (messages_by_name(parse_proto(each).files) for each in (writer, reader))
    told = mismatches(".shop.Order", theirs, ".shop.Order", ours)
    assert told == [] if found is None else found in told[0]


ALL = f"""{HEAD} message Order {{
  enum Kind {{ NONE = 0; GIFT = 1; }}
  message Line {{ optional string item = 1; double price = 2; }}
  sint64 n = 1; optional bytes raw = 2; repeated Line lines = 3; map<string, Line> named = 4; Kind kind = 5;
  repeated bool flags = 6; Line line = 7;
}}"""
LINES = st.fixed_dictionaries({"item": st.none() | st.text(max_size=5), "price": st.floats(allow_nan=False)})
ROWS = st.fixed_dictionaries(
    {
        "n": st.integers(-(2**63), 2**63 - 1),
        "raw": st.none() | st.binary(max_size=5),
        "lines": st.lists(LINES, max_size=3),
        "named": st.dictionaries(st.text(max_size=3), LINES, max_size=3),
        "kind": st.sampled_from(["NONE", "GIFT", "7"]),
        "flags": st.lists(st.booleans(), max_size=3),
        "line": st.none() | LINES,
    }
)


@settings(max_examples=examples(50))
@given(ROWS)
def test_a_row_is_read_as_it_was_written(row: dict[str, Any]) -> None:
    kind = message_type(ALL, None)
    assert kind.read(filled(kind, row)) == row


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"n": None}, "n is null"),
        ({"n": 2**63}, "n is 9223372036854775808, and sint64"),
        ({"kind": "GIVT"}, "one of NONE, GIFT"),
        ({"lines": [{"price": "x"}]}, r"lines\[\].price is 'x', and double"),
        ({"flags": [True, None]}, r"flags\[\] is null"),
        ({"line": {"cost": 1}}, "no field line.cost"),
    ],
)
def test_a_value_that_does_not_fit_names_its_field(row: dict[str, Any], told: str) -> None:
    with pytest.raises(UnfitValue, match=told):
        filled(message_type(ALL, None), row)


def test_bytes_of_another_type_in_a_message_inside_name_the_field() -> None:
    reader = message_type(INSIDE % "string x = 1", None)
    writer = message_type(INSIDE % "int32 x = 1", None)
    with pytest.raises(UnreadableBody, match=r"another type in the field a\.x"):
        reader.read(filled(writer, {"a": {"x": 1}}))


TYPES = f"""{HEAD}
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
message Order {{
  message Line {{ optional string item = 1; }}
  uint64 n = 1; google.protobuf.Timestamp at = 2; google.protobuf.Int32Value small = 3;
  repeated google.protobuf.UInt64Value many = 4; Line line = 5; map<string, int32> counts = 6;
}}"""
AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
REQUIRED = """syntax = "proto2"; message Order {
  enum Kind { NONE = 0; GIFT = 1; }
  required string a = 1; optional Kind kind = 2; optional int32 n = 3 [default = 7];
}"""


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes with some of them changed, put in, or left out, up to all."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=4))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@settings(max_examples=examples(300))
@given(st.data())
def test_any_bytes_are_a_row_or_unreadable_and_never_a_defect(data: st.DataObject) -> None:
    for text, row in (
        (TYPES, {"n": 1, "at": AT, "small": 5, "many": [3], "line": {"item": "x"}, "counts": {"a": 2}}),
        (ALL, {"n": 7, "raw": b"x", "lines": [{"item": "a", "price": 1.5}], "named": {}, "kind": "GIFT"}),
    ):
        kind = message_type(text, None)
        body = data.draw(st.binary(max_size=40) | damaged(filled(kind, row)))
        with suppress(UnreadableBody):
            assert isinstance(kind.read(body), dict)


@given(st.binary(max_size=30) | st.binary(max_size=20).map(lambda rest: b"\0\0\0\0\1" + rest))
def test_any_bytes_have_a_head_or_none(data: bytes) -> None:
    found = unframed(data)
    if found is not None:
        number, indexes, body = found
        assert framed(number, indexes) + body == data or data.endswith(body)
        assert all(each >= 0 for each in indexes)


def test_times_wrappers_unsigned_numbers_and_empty_messages_are_read_as_they_were_written() -> None:
    kind, most = message_type(TYPES, None), Decimal(2**64 - 1)
    row = {"n": most, "at": AT, "small": 0, "many": [most], "line": {"item": None}, "counts": {"b": 1, "a": 2}}
    found = kind.read(filled(kind, row))
    assert found == row
    assert isinstance(found["n"], Decimal)
    absent = {"n": 1, "at": None, "small": None, "many": None, "line": None, "counts": None}
    assert kind.read(filled(kind, absent)) == {**absent, "many": [], "counts": {}}


def test_a_map_is_the_same_bytes_in_whatever_order_it_is_given() -> None:
    kind, counts = message_type(TYPES, None), {str(number): number for number in range(20)}
    assert filled(kind, {"counts": counts}) == filled(kind, {"counts": dict(reversed(counts.items()))})


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"at": 5}, r"at is 5, and google\.protobuf\.Timestamp in the schema \(give a datetime"),
        ({"n": Decimal("1.5")}, r"n is Decimal\('1\.5'\), and uint64"),
        ({"line": 3}, "line is 3, and a message"),
    ],
)
def test_what_is_no_time_no_whole_number_and_no_message_names_its_field(row: dict[str, Any], told: str) -> None:
    with pytest.raises(UnfitValue, match=told):
        filled(message_type(TYPES, None), row)


def test_required_fields_closed_enums_and_defaults_of_a_schema_are_kept_to() -> None:
    kind = message_type(REQUIRED, None)
    assert kind.read(filled(kind, {"a": "x"})) == {"a": "x", "kind": None, "n": 7}
    with pytest.raises(UnfitValue, match="required fields a are missing"):
        filled(kind, {"a": None})
    with pytest.raises(UnfitValue, match="one of NONE, GIFT"):
        filled(kind, {"a": "x", "kind": "7"})
    with pytest.raises(UnreadableBody, match="without the required fields a"):
        kind.read(b"")


def test_damaged_bytes_and_times_say_so() -> None:
    with pytest.raises(UnreadableBody, match="damaged"):
        message_type(TYPES, None).read(b"\xff")
    writer = message_type(f"{HEAD} message Order {{ Line at = 2; }} message Line {{ int64 seconds = 1; }}", None)
    with pytest.raises(UnreadableBody, match="damaged: the field at is no time"):
        message_type(TYPES, None).read(filled(writer, {"at": {"seconds": 10**18}}))


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize("body", [b"\x0a\x01\xff", b"\x12\x05\x0a\x01\xff\x10\x01", b"\x1a\x01\xff"])
def test_texts_that_are_no_utf_8_are_damaged(syntax: str, body: bytes) -> None:
    fields = "optional string a = 1; map<string, int32> b = 2; repeated string c = 3;"
    with pytest.raises(UnreadableBody, match="damaged"):
        message_type(f'syntax = "{syntax}"; message Order {{ {fields} }}', None).read(body)


def test_a_schema_is_taken_as_text_and_as_a_descriptor_and_asked_for_until_it_is_there() -> None:
    schemas = LocalSchemas()
    known = ProtoFormat("protobuf", ORDER, None, proto_writer_schemas(schemas))
    data = [framed(number, (0,)) + filled(known.message_type, {"user": "ann"}) for number in (1, 2)]
    assert not known.learn(pa.array([*data, None, b"{}"]))
    schemas.id_of("a", ORDER, "PROTOBUF")
    file = parse_proto(ORDER).files.file[-1]
    schemas.id_of("a", base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")
    assert known.learn(pa.array(data))
    assert not known.learn(pa.array(data))
    assert [known.decoded(each) for each in data] == [{"user": "ann", "amount": None, "note": ""}] * 2


def test_a_message_inside_of_itself_is_shown_as_it_was_written() -> None:
    schemas = LocalSchemas()
    text = proto("Order inside = 1", "int32 depth = 2")
    number = schemas.id_of("a", text, "PROTOBUF")
    body = b"\x0a\x02\x10\x02\x10\x01"
    assert as_written(framed(number, (0,)) + body, proto_writer_schemas(schemas)) == {
        "inside": {"inside": None, "depth": 2},
        "depth": 1,
    }


def test_a_written_descriptor_that_imports_another_file_is_named_as_unusable() -> None:
    schemas = LocalSchemas()
    file = FileDescriptorProto(name="a.proto", dependency=["shop/other.proto"])
    number = schemas.id_of("a", base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")
    assert "it imports what is not Protobuf's own" in str(proto_writer_schemas(schemas).problem(number))


@pytest.mark.parametrize("kind", [DateType(), DecimalType(20, 0), ArrayType(ArrayType(LongType()))])
def test_columns_that_a_made_schema_does_not_hold_are_refused(kind: DataType) -> None:
    with pytest.raises(InvalidApplicationException, match="no type for"):
        proto_writer("out", "value", Format("protobuf"), StructType([]).add("c", kind), "spec.topology.sinks[0]")


def test_a_schema_that_is_made_of_columns_is_named_after_the_topic() -> None:
    inner = StructType([]).add("x", LongType())
    columns = StructType([]).add("user", StringType()).add("deep", ArrayType(inner))
    made = proto_writer("my-out", "value", Format("protobuf"), columns, "spec.topology.sinks[0]")
    parsed = parse_proto(made.text)
    assert (parsed.message, parsed.problems, made.indexes) == ("my_out_value", (), (0,))
    row = {"user": "ann", "deep": [{"x": 1}]}
    assert made.kind.read(filled(made.kind, row)) == row
