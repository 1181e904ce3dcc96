"""Protobuf schemas as users declare them, and what stands before a record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.api.flow.known_columns import shown_type
from streams_runtime.api.schemas.proto_schema import parse_proto
from streams_runtime.pipeline.formats.protobuf.proto_wire import framed, unframed

HEAD = 'syntax = "proto3"; package shop;'
ORDER = f"""{HEAD}
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Kind {{ NONE = 0; GIFT = 1; }}
message Line {{ string item = 1; uint64 parts = 2; message Size {{ int32 x = 1; }} }}
message Order {{
  string user = 1;
  optional double amount = 2;
  Kind kind = 3;
  repeated Line lines = 4;
  map<string, sint64> notes = 5;
  google.protobuf.Timestamp at = 6;
  google.protobuf.Int32Value rank = 7;
  oneof paid {{ string card = 8; bytes cash = 9; }}
  uint32 n = 10;
}}
"""


def test_the_fields_of_a_message_are_columns() -> None:
    found = parse_proto(ORDER, "Order")
    assert found.problems == ()
    assert found.columns is not None
    assert {each.name: each.type and shown_type(each.type) for each in found.columns} == {
        "user": "STRING",
        "amount": "DOUBLE",
        "kind": "STRING",
        "lines": "ARRAY<STRUCT<`item`: STRING, `parts`: DECIMAL(20, 0)>>",
        "notes": "MAP<STRING, BIGINT>",
        "at": "TIMESTAMP",
        "rank": "INT",
        "card": "STRING",
        "cash": "BINARY",
        "n": "BIGINT",
    }


@pytest.mark.parametrize(
    ("message", "name", "indexes"), [(None, "Line", (0,)), ("Order", "Order", (1,)), ("Line.Size", "Line.Size", (0, 0))]
)
def test_a_message_is_found_by_its_name_and_the_first_one_without(
    message: str | None, name: str, indexes: tuple[int, ...]
) -> None:
    found = parse_proto(ORDER, message)
    assert (found.message, found.indexes, found.problems) == (name, indexes, ())


@pytest.mark.parametrize(
    ("text", "message", "told", "remedy"),
    [
        ("message A {", None, "no Protobuf schema: at line 1", "write messages: syntax"),
        (f"{HEAD} enum E {{ A = 0; }}", None, "without a message", "message Order"),
        (f"{HEAD} message A {{ int32 a = 1; }}", "B", "there is no message 'B'", "A"),
        (f"{HEAD} message A {{ A a = 1; }}", None, "the message shop.A inside of itself in the field a", "recursive"),
        (f"{HEAD} message A {{ B b = 1; }} message B {{ repeated A a = 1; }}", None, "in the field b.a", "recursive"),
        (f"{HEAD} message A {{ B b = 1; }} message B {{ }}", None, "shop.B without fields in the field b", "one"),
        ('syntax = "proto2"; message A { optional group G = 1 { optional int32 a = 2; } }', None, "a group", "message"),
        (
            f'{HEAD} import "google/protobuf/any.proto"; message A {{ google.protobuf.Any a = 1; }}',
            None,
            "the type google.protobuf.Any in the field a",
            "Timestamp",
        ),
        (f"{HEAD} message A {{ map<int32, int32> a = 1; }}", None, "a map with keys of int32 in the field a", "string"),
        ('edition = "2023"; message A { int32 a = 1; }', None, "an edition", "proto3"),
        (f'{HEAD} import "other.proto"; message A {{ int32 a = 1; }}', None, "other.proto", "write messages"),
    ],
)
def test_what_is_wrong_with_a_schema_is_told(text: str, message: str | None, told: str, remedy: str) -> None:
    problems = parse_proto(text, message).problems
    assert any(told in each.found and remedy in each.remedy for each in problems), problems


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2**31), min_size=1, max_size=5).map(tuple), st.binary())
def test_what_stands_before_a_record_is_read_as_it_was_written(id: int, indexes: tuple[int, ...], body: bytes) -> None:
    assert unframed(framed(id, indexes) + body) == (id, indexes, body)


def test_the_first_message_is_a_single_byte_and_others_are_counted() -> None:
    assert framed(7, (0,)) == b"\0\0\0\0\7\0"
    assert framed(7, (1, 0)) == b"\0\0\0\0\7\4\2\0"
    assert unframed(b"\0\0\0\0\7\2\0") == (7, (0,), b"")


@pytest.mark.parametrize(
    "data",
    [b"", b"\0\0\0\0\7", b"\1\0\0\0\7\0", b"\0\0\0\0\7\4\2", b"\0\0\0\0\7\x80", b"\0\0\0\0\7\1", b"\0\0\0\0\7\2\1"],
)
def test_bytes_that_begin_otherwise_are_no_record(data: bytes) -> None:
    assert unframed(data) is None
