"""Columns as bytes: what the single-value serdes write, and what Java's serializers write, for whole columns."""

from __future__ import annotations

import math
import struct
from typing import Any

import orjson
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.batch.encode import encoded
from streams_runtime.state.serdes import key_serde
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

LONGS, INTS = st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1)
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "string": (pa.string(), st.text(max_size=6)),
    "bytes": (pa.binary(), st.binary(max_size=6)),
    "long": (pa.int64(), LONGS),
    "int": (pa.int32(), INTS),
    "double": (pa.float64(), st.floats()),
    "json": (
        pa.struct([("user", pa.string()), ("n", pa.int64())]),
        st.builds(lambda user, n: {"user": user, "n": n}, st.none() | st.text(max_size=4), st.none() | LONGS),
    ),
}


@settings(max_examples=examples(100))
@given(st.data(), st.sampled_from(list(COLUMNS)), st.integers(0, 5))
def test_a_column_becomes_what_the_serde_writes_for_each_value(data: st.DataObject, name: str, cut: int) -> None:
    kind, values = COLUMNS[name]
    rows = data.draw(st.lists(st.none() | values, max_size=10))
    serde = key_serde(Format(name))
    expected = [None if row is None else serde.encode(row) for row in rows]
    assert encoded(pa.array(rows, kind)) == expected
    chunks = [pa.array(rows[:cut], kind), pa.array(rows[cut:], kind)]
    assert encoded(pa.chunked_array(chunks, kind)) == expected


@given(LONGS, INTS, st.floats(allow_nan=False))
def test_numbers_are_big_endian(long: int, int_: int, double: float) -> None:
    assert encoded(pa.array([long], pa.int64())) == [struct.pack(">q", long)]
    assert encoded(pa.array([int_], pa.int32())) == [struct.pack(">i", int_)]
    assert encoded(pa.array([double], pa.float64())) == [struct.pack(">d", double)]


def test_negative_numbers_and_both_zeros_keep_their_bits() -> None:
    assert [each and each.hex() for each in encoded(pa.array([-1, -(2**63), None], pa.int64()))] == [
        "ffffffffffffffff",
        "8000000000000000",
        None,
    ]
    assert [each and each.hex() for each in encoded(pa.array([-2, 258], pa.int32()))] == ["fffffffe", "00000102"]
    zeros = encoded(pa.array([0.0, -0.0, -math.inf]))
    assert [each and each.hex() for each in zeros] == ["0000000000000000", "8000000000000000", "fff0000000000000"]


def test_every_nan_becomes_the_one_that_java_writes() -> None:
    odd = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
    assert encoded(pa.array([odd, math.nan, None])) == [bytes.fromhex("7ff8000000000000")] * 2 + [None]


def test_a_slice_of_a_column_is_encoded_as_that_slice() -> None:
    for kind, values in [(pa.int64(), [1, None, 3, 4]), (pa.string(), ["a", None, "c", "d"])]:
        whole = encoded(pa.array(values, kind))
        assert encoded(pa.array(values, kind).slice(1, 2)) == whole[1:3]
        assert encoded(pa.array(values, kind).take(pa.array([3, 1]))) == [whole[3], whole[1]]


def test_large_strings_and_binaries_are_encoded_as_the_small_ones() -> None:
    assert encoded(pa.array(["ü", None], pa.large_string())) == ["ü".encode(), None]
    assert encoded(pa.array([b"\xff", None], pa.large_binary())) == [b"\xff", None]


def test_bytes_that_are_no_utf8_pass_through_a_string_column_as_they_came() -> None:
    offsets, data = pa.py_buffer(struct.pack("<3i", 0, 1, 2)), pa.py_buffer(b"\xffa")
    column = pa.Array.from_buffers(pa.string(), 2, [None, offsets, data])
    assert encoded(column) == [b"\xff", b"a"]


def test_a_struct_is_compact_json_with_its_fields_in_order() -> None:
    kind = pa.struct([("z", pa.string()), ("a", pa.float64()), ("in", pa.struct([("ok", pa.bool_())]))])
    rows = [{"z": 'ü"', "a": 1.5, "in": {"ok": True}}, {"z": None, "a": None, "in": None}, None]
    assert encoded(pa.array(rows, kind)) == [
        '{"z":"ü\\"","a":1.5,"in":{"ok":true}}'.encode(),
        b'{"z":null,"a":null,"in":null}',
        None,
    ]
    assert orjson.loads(encoded(pa.array(rows, kind))[0] or b"") == rows[0]


def test_an_empty_column_gives_nothing() -> None:
    for kind, _ in COLUMNS.values():
        assert encoded(pa.array([], kind)) == []
        assert encoded(pa.chunked_array([], kind)) == []


def test_a_type_without_a_format_is_a_defect_and_not_bytes() -> None:
    with pytest.raises(AssertionError, match="bool"):
        encoded(pa.array([True]))
