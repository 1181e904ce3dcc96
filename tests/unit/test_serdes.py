"""Keys and values are the bytes that Kafka's own serializers write."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams_runtime.errors import ConfigException, StreamsException
from streams_runtime.state.serdes import Serde, SerdeException, key_serde, value_serde
from streams_runtime.topology.nodes.source_and_sink_nodes import Format


def serde(name: str) -> Serde:
    return key_serde(Format(name, None))


# Written by StringSerializer, ByteArraySerializer, LongSerializer, IntegerSerializer and DoubleSerializer.
KAFKA_BYTES = [
    ("string", "flüge", "666cc3bc6765"),
    ("string", "", ""),
    ("bytes", b"\x00\xff", "00ff"),
    ("long", 1, "0000000000000001"),
    ("long", -2, "fffffffffffffffe"),
    ("long", 2**63 - 1, "7fffffffffffffff"),
    ("long", -(2**63), "8000000000000000"),
    ("int", 258, "00000102"),
    ("int", -1, "ffffffff"),
    ("double", 1.5, "3ff8000000000000"),
    ("double", -0.0, "8000000000000000"),
    ("double", 3, "4008000000000000"),
    ("double", math.inf, "7ff0000000000000"),
    ("json", {"user": "ü", "n": [1, None, True]}, b'{"user":"\xc3\xbc","n":[1,null,true]}'.hex()),
]


@pytest.mark.parametrize(("name", "value", "expected"), KAFKA_BYTES)
def test_a_value_becomes_kafkas_bytes_and_comes_back(name: str, value: object, expected: str) -> None:
    assert serde(name).encode(value).hex() == expected
    assert serde(name).decode(bytes.fromhex(expected)) == value


def test_every_nan_becomes_the_one_that_java_writes() -> None:
    odd_nan = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
    assert serde("double").encode(odd_nan).hex() == "7ff8000000000000"
    assert math.isnan(serde("double").decode(bytes.fromhex("7ff8000000000000")))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("string", " 42 ", " 42 "),
        ("long", "-9223372036854775808", -(2**63)),
        ("int", "007", 7),
        ("double", "-1.5e3", -1500.0),
        ("double", "-Infinity", -math.inf),
        ("bytes", "AP8=", b"\x00\xff"),
        ("bytes", "AP8", b"\x00\xff"),
        ("bytes", "-_8=", b"\xfb\xff"),
        ("bytes", "+/8=", b"\xfb\xff"),
        ("bytes", "", b""),
        ("json", '{ "user": "a" }', {"user": "a"}),
        ("json", '"AA"', "AA"),
    ],
)
def test_text_is_parsed_in_the_keys_format(name: str, text: str, expected: object) -> None:
    assert serde(name).parse(text) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("long", "9223372036854775808"),
        ("int", "2147483648"),
        ("int", "1_000"),
        ("int", " 1"),
        ("int", "٣"),
        ("int", ""),
        ("long", "9" * 5000),
        ("double", "1_0"),
        ("double", "inf"),
        ("double", ""),
        ("bytes", "A"),
        ("bytes", "AP8!A"),
        ("bytes", "AP8 A"),
        ("bytes", "ü"),
        ("json", "AA"),
        ("json", "NaN"),
    ],
)
def test_text_that_is_no_key_is_refused(name: str, text: str) -> None:
    with pytest.raises(SerdeException, match=name):
        serde(name).parse(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("string", 1),
        ("string", None),
        ("string", "\ud800"),
        ("bytes", "text"),
        ("long", 2**63),
        ("long", True),
        ("long", 1.0),
        ("int", -(2**31) - 1),
        ("double", "1"),
        ("double", 10**400),
        ("json", {"x": math.nan}),
        ("json", [[math.inf]]),
        ("json", object()),
    ],
)
def test_a_value_that_the_format_cannot_hold_is_refused(name: str, value: object) -> None:
    with pytest.raises(SerdeException, match=name):
        serde(name).encode(value)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("long", b"\x00" * 7),
        ("long", b""),
        ("int", b"\x00" * 8),
        ("double", b"\x00"),
        ("json", b"{"),
        ("json", b""),
        ("json", b"\xff"),
    ],
)
def test_bytes_of_another_format_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(SerdeException, match=name):
        serde(name).decode(data)


def test_a_document_nested_too_deeply_is_refused_by_name() -> None:
    document = "[" * 1000 + "]" * 1000
    with pytest.raises(SerdeException, match="json"):
        serde("json").encode(serde("json").parse(document))


def test_bad_data_is_both_a_value_error_and_fit_for_users() -> None:
    assert issubclass(SerdeException, ValueError)
    assert issubclass(SerdeException, StreamsException)


def test_an_unknown_format_names_those_that_there_are() -> None:
    with pytest.raises(ConfigException, match=r"avro.*string, bytes, long, int, double, json"):
        value_serde(Format("avro", None))


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_text_of_a_long_finds_the_long(number: int) -> None:
    long = serde("long")
    assert long.decode(long.encode(long.parse(str(number)))) == number


@given(st.floats(allow_nan=False))
def test_text_of_a_double_finds_the_double(number: float) -> None:
    double = serde("double")
    text = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(number, repr(number))
    assert double.encode(double.parse(text)) == struct.pack(">d", number)


@pytest.mark.parametrize(
    ("name", "data", "shown"),
    [("string", b"a\xffb\xc3", "a\ufffdb\ufffd"), ("json", b'{"id": "\xff"}', {"id": "\ufffd"})],
)
def test_a_key_that_a_store_has_and_that_is_no_utf_8_is_shown_as_kafkas_deserializer_reads_it(
    name: str, data: bytes, shown: object
) -> None:
    assert key_serde(Format(name)).decode(data) == shown
