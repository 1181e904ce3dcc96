"""Why a record can't be read, in words that name the part and show what was found."""

from __future__ import annotations

import pytest

from streams_runtime.pipeline.formats.decode import Decoder
from streams_runtime.pipeline.formats.diagnose import reason
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

JSON = Format("json", "amount DOUBLE")


def why(key: Format, value: Format, record: tuple[bytes | None, bytes | None], timestamp: str | None = None) -> str:
    return reason(Decoder(key, value, timestamp), *record)


@pytest.mark.parametrize(
    ("key", "value", "record", "expected"),
    [
        ("long", "string", (b"12", b"x"), "its key has 2 bytes, and a long has 8"),
        ("string", "int", (b"k", b""), "its value has 0 bytes, and a int has 4"),
        ("string", "double", (b"k", b"123456789"), "its value has 9 bytes, and a double has 8"),
        ("long", "int", (b"1", b"2"), "its key has 1 bytes, and a long has 8"),
        ("long", "int", (None, b"2"), "its value has 1 bytes, and a int has 4"),
    ],
)
def test_a_number_of_the_wrong_width_is_counted(
    key: str, value: str, record: tuple[bytes | None, bytes | None], expected: str
) -> None:
    assert why(Format(key), Format(value), record) == expected


def test_what_is_no_json_is_shown_with_the_place_where_it_breaks() -> None:
    said = why(Format("string"), JSON, (b"k", b'{"amount": 1'))
    assert said.startswith("its value is not JSON (")
    assert said.endswith(': {"amount": 1')
    assert "line 1 column 13" in said


def test_json_of_another_shape_is_named_as_such() -> None:
    assert why(Format("string"), JSON, (b"k", b"[1]")) == "its value is JSON, but no object: [1]"
    said = why(Format("string"), JSON, (b"k", b'{"amount": "much"}'))
    assert said == 'its value does not fit the schema amount DOUBLE: {"amount": "much"}'


def test_a_json_key_is_named_before_the_value() -> None:
    assert why(JSON, JSON, (b"12", b"[]")) == "its key is JSON, but no object: 12"
    assert why(JSON, JSON, (b'{"amount":1}', b"[]")) == "its value is JSON, but no object: []"


def test_a_long_value_is_cut_and_bytes_that_are_no_text_are_shown_by_their_numbers() -> None:
    said = why(Format("string"), JSON, (b"k", b'"' + b"x" * 500))
    assert said.endswith('"' + "x" * 79 + "…")
    assert why(Format("string"), JSON, (b"k", b"\xff\xfe")).endswith(r": \xff\xfe")


def test_a_declared_timestamp_that_is_null_is_the_reason_when_nothing_else_is() -> None:
    assert why(Format("string"), Format("bytes"), (b"k", b"v"), "ts") == "its timestamp ts is null"
    assert why(Format("long"), Format("bytes"), (b"k", b"v"), "ts").startswith("its key has 1 bytes")


def test_what_nothing_explains_still_says_what_was_declared() -> None:
    said = why(Format("string"), Format("bytes"), (b"k", b"v"))
    assert said == "it does not fit the declared formats (string key, bytes value)"
