"""Bytes to columns and back inside Spark: the same as the single-value serdes, which are the same as Kafka's."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_texts import JSON_TEXTS
from pipeline_kit import Pipeline, Record, batch, sent, source, topology_of

from streams_runtime.pipeline.formats.decode import Decoder
from streams_runtime.pipeline.kafka_scan import FIELDS, READ
from streams_runtime.pipeline.spark.frames import frame_of
from streams_runtime.state.serdes import SerdeException, key_serde
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

BROKEN = "broken"
LONGS = [0, 1, -1, 255, 256, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63)]
INTS = [0, 1, -1, 255, 256, -256, 2**31 - 1, -(2**31)]
DOUBLES = [0.0, -0.0, 1.5, -1e300, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan, 0.1]
STRINGS = ["", "a", "flüge", "\U0001f600", '"quoted"\\', "tab\tnewline\n", "\x00", " spaces "]
BYTES = [b"", b"\x00", b"\xff\xfe", b"text"]
GOOD: dict[str, Sequence[Any]] = {"long": LONGS, "int": INTS, "double": DOUBLES, "string": STRINGS, "bytes": BYTES}
WRONG_WIDTH = [b"", b"\x01", b"1234567", b"123456789", b"x" * 20]


def decoded(
    spark: SparkSession, decoder: Decoder, values: Sequence[bytes | None], keys: bool = False, by_spark: bool = False
) -> list[Any]:
    """What each value (or key) is read as: BROKEN, None for no value at all, or the column(s).

    `by_spark`: no value is read outside of it.
    """
    records = [Record(value, b"", offset=n) if keys else Record(b"", value, offset=n) for n, value in enumerate(values)]
    raw, wanted = batch(*records).records, decoder.wanted(headers=True)
    frame = frame_of(spark, wanted.read(raw))
    if by_spark:
        assert raw is not None
        unread = {FIELDS: pa.nulls(len(raw), wanted.schema.field(FIELDS).type), READ: pa.repeat(False, len(raw))}
        frame = spark.createDataFrame(pa.table({name: raw[name] for name in raw.column_names} | unread))
    rows = decoder.decode(frame).toArrow().to_pylist()
    assert [row["_offset"] for row in rows] == list(range(len(values)))
    fields = [name for name in rows[0] if not name.startswith("_")]
    found: list[Any] = []
    for row in rows:
        if row["_broken"]:
            found.append(BROKEN)
        elif keys:
            found.append(row["_key"])
        else:
            value = {name: row[name] for name in fields}
            found.append(None if row["_null"] else value["value"] if fields == ["value"] else value)
    return found


def same(left: Any, right: Any) -> bool:
    """Equal, where NaN is equal to NaN and the two zeros differ."""
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack(">d", left) == struct.pack(">d", right)
    return bool(left == right)


@pytest.mark.parametrize("name", list(GOOD))
@pytest.mark.parametrize("keys", [False, True])
def test_a_primitive_is_read_as_the_serde_reads_it(spark: SparkSession, name: str, keys: bool) -> None:
    serde = key_serde(Format(name))
    data = [serde.encode(value) for value in GOOD[name]] + [None]
    decoder = Decoder(Format(name), Format("bytes")) if keys else Decoder(Format("bytes"), Format(name))
    found = decoded(spark, decoder, data, keys)
    expected = [serde.decode(each) for each in data if each is not None] + [None]
    assert all(same(f, e) for f, e in zip(found, expected, strict=True)), found


@pytest.mark.parametrize("name", ["long", "int", "double"])
@pytest.mark.parametrize("keys", [False, True])
def test_a_number_of_another_width_is_broken_and_nothing_else_is(spark: SparkSession, name: str, keys: bool) -> None:
    serde = key_serde(Format(name))
    wide = {"int": b"12345678"}.get(name, b"1234")
    data = [*WRONG_WIDTH, wide, serde.encode(7), None]
    for each in data[:-2]:
        with pytest.raises(SerdeException):
            serde.decode(each or b"")
    decoder = Decoder(Format(name), Format("bytes")) if keys else Decoder(Format("bytes"), Format(name))
    assert decoded(spark, decoder, data, keys) == [BROKEN] * (len(data) - 2) + [7, None]


SCHEMA = "a BIGINT, s STRING, d DOUBLE, b BOOLEAN, t TIMESTAMP, n STRUCT<x: INT>, l ARRAY<INT>"
NOTHING = dict.fromkeys("asdbtnl")
TIME = dt.datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=dt.UTC)
JSON: list[tuple[bytes | None, Any]] = [
    (
        b'{"a":1,"s":"x","d":1.5,"b":true,"n":{"x":1},"l":[1,2]}',
        {"a": 1, "s": "x", "d": 1.5, "b": True, "n": {"x": 1}, "l": [1, 2]},
    ),
    (b'{"t":"2024-01-02T03:04:05.123456Z"}', {"t": TIME}),
    (b'{"t":"2024-01-02T05:04:05.123456+02:00"}', {"t": TIME}),
    # What is missing is null, what is too much is not looked at.
    (b"{}", {}),
    (b'{"a":null,"s":null}', {}),
    (b'{"z":1,"a":2,"zz":{"y":[]}}', {"a": 2}),
    (b'{"A":1}', {}),
    # Numbers.
    (b'{"a":9223372036854775807}', {"a": 2**63 - 1}),
    (b'{"a":-9223372036854775808}', {"a": -(2**63)}),
    (b'{"d":1}', {"d": 1.0}),
    (b'{"a":9223372036854775808}', BROKEN),
    (b'{"a":1.5}', BROKEN),
    (b'{"a":"1"}', BROKEN),
    (b'{"a":true}', BROKEN),
    (b'{"d":"much"}', BROKEN),
    # What is no number of JSON, and what is too large for its column; a column that is not declared may be as large.
    *((b'{"d":%s}' % each, BROKEN) for each in (b"NaN", b"Infinity", b"-Infinity", b'"NaN"', b'"Infinity"')),
    *((b'{"d":%s}' % each, BROKEN) for each in (b"1e400", b"-1e400", b"9" * 400)),
    (b'{"z":NaN}', BROKEN),
    (b'{"z":1e400}', {}),
    (b'{"d":-1.7976931348623157e308}', {"d": -1.7976931348623157e308}),
    (b'{"d":1e-400}', {"d": 0.0}),
    # A column of text takes whatever stands there, as it stands there.
    (b'{"s":5}', {"s": "5"}),
    (b'{"s":{"x": 1}}', {"s": '{"x":1}'}),
    # Other wrong types.
    (b'{"b":"true"}', BROKEN),
    (b'{"t":"yesterday"}', BROKEN),
    (b'{"n":5}', BROKEN),
    (b'{"n":{"x":"y"}}', BROKEN),
    (b'{"l":5}', BROKEN),
    # Text.
    (b'{"s":"\\u00fc\\ud83d\\ude00 \\"\\\\"}', {"s": '\u00fc\U0001f600 "\\'}),
    ('{"s":"fl\u00fcge \U0001f600"}'.encode(), {"s": "fl\u00fcge \U0001f600"}),
    (b'{"s":""}', {"s": ""}),
    (b' \n\t{"a":1} \n', {"a": 1}),
    (b'{"a":1,"a":2}', {"a": 2}),
    # A limit of Spark's parser: what follows the object is not looked at.
    (b'{"a":1} {"a":2}', {"a": 1}),
    # No JSON, or no object.
    (b"{", BROKEN),
    (b'{"a":1', BROKEN),
    (b'{"a":}', BROKEN),
    (b"{'a':1}", BROKEN),
    (b'{"s":"new\nline"}', BROKEN),
    (b"[]", BROKEN),
    (b'[{"a":1}]', BROKEN),
    (b' [{"a":1}]', BROKEN),
    (b'\n[{"a":1}]', BROKEN),
    (b"5", BROKEN),
    (b'"text"', BROKEN),
    (b"true", BROKEN),
    (b"", BROKEN),
    (b" ", BROKEN),
    (b"nullify", BROKEN),
    (b"\xff", BROKEN),
    # No value at all.
    (None, None),
    (b"null", None),
]


def test_json_is_read_by_its_schema_or_is_broken(spark: SparkSession) -> None:
    found = decoded(spark, Decoder(Format("bytes"), Format("json", SCHEMA)), [data for data, _ in JSON])
    expected = [NOTHING | value if isinstance(value, dict) else value for _, value in JSON]
    differences = [
        (data, f"found {f}", f"expected {e}")
        for (data, _), f, e in zip(JSON, found, expected, strict=True)
        if not same(f, e)
    ]
    assert differences == []


def test_a_number_that_is_too_large_is_found_wherever_it_stands(spark: SparkSession) -> None:
    schema = "f FLOAT, l ARRAY<DOUBLE>, m MAP<STRING, STRUCT<x: DOUBLE>>, i INT"
    good = b'{"f":3e38,"l":[1,null,2.5],"m":{"k":{"x":1e308},"n":null}}'
    data = [good, b"{}", b'{"f":4e38}', b'{"l":[1,1e309]}', b'{"m":{"k":{"x":-1e309}}}', b'{"l":[NaN]}', b'{"f":"NaN"}']
    found = decoded(spark, Decoder(Format("bytes"), Format("json", schema)), data)
    assert found[1:] == [{"f": None, "l": None, "m": None, "i": None}, *([BROKEN] * 5)]
    assert found[0]["l"] == [1.0, None, 2.5]


def test_what_the_application_writes_for_itself_has_texts_for_what_json_has_no_numbers_for(spark: SparkSession) -> None:
    own = Decoder(Format("bytes"), Format("json", "d DOUBLE"), strict=False)
    data = [b'{"d":"NaN"}', b'{"d":"Infinity"}', b'{"d":"-Infinity"}', b'{"d":1.5}']
    found = [row["d"] for row in decoded(spark, own, data)]
    assert math.isnan(found[0])
    assert found[1:] == [math.inf, -math.inf, 1.5]


ODD: list[bytes | None] = [
    *(
        b'{"d":%s,"z":%s}' % (each, each)
        for each in (b"NaN", b"Inf", b"INF", b"Infinity", b"-Inf", b"-INF", b"-Infinity")
    ),
    b'{"s":"\xff"}',
    b'{"s":"x","z":"\xff\xfe"}',
    b'{"a":1,"z":"\\ud800"}',
    b'{"t":"2024-02-30T00:00:00Z"}',
    b'{"t":"2024-01-01T00:00:00ZZ"}',
    b'{"t":"2024-01-01T00:00"}',
    b'{"a":1,"z":' + b"[" * 1100 + b"]" * 1100 + b"}",
    b'{"a":1,"z":' + b"1" * 1100 + b"}",
    b'{"a":1,"' + b"z" * 60_000 + b'":1}',
    b'{"a":1}\x00}',
    b'{"a":1}}',
    b'{"a":1} x}',
]


def test_what_is_read_outside_of_spark_is_what_spark_reads(spark: SparkSession) -> None:
    decoder = Decoder(Format("bytes"), Format("json", SCHEMA))
    data = [*(each for each, _ in JSON), *ODD]
    assert decoder.json is not None
    # Each by itself, as no other one decides then whether it is read.
    alone = [decoder.json.read(pa.array([each], pa.binary())) for each in data]
    found = [fields.to_pylist()[0] if read[0].as_py() else None for fields, read in alone]
    by_spark = decoded(spark, decoder, data, by_spark=True)
    assert [(d, f, s) for d, f, s in zip(data, found, by_spark, strict=True) if f is not None and not same(f, s)] == []
    assert sum(each is not None for each in found) >= 12


@settings(max_examples=8, deadline=None)
@given(texts=st.lists(JSON_TEXTS, min_size=150, max_size=300))
def test_any_text_is_read_outside_of_spark_as_spark_reads_it_or_not_at_all(
    spark: SparkSession, texts: list[bytes]
) -> None:
    decoder = Decoder(Format("bytes"), Format("json", SCHEMA))
    assert decoder.json is not None
    by_spark = decoded(spark, decoder, texts, by_spark=True)
    alone = [decoder.json.read(pa.array([each], pa.binary())) for each in texts]
    found = [fields.to_pylist()[0] if read[0].as_py() else None for fields, read in alone]
    assert [(d, f, s) for d, f, s in zip(texts, found, by_spark, strict=True) if f is not None and not same(f, s)] == []
    # And together, where those that are not read have neighbours.
    together, read = decoder.json.read(pa.array(texts, pa.binary()))
    for text, fields, done, expected in zip(texts, together.to_pylist(), read.to_pylist(), by_spark, strict=True):
        assert not done or same(fields, expected), text


def test_a_json_key_is_a_struct_and_is_broken_as_a_value_is(spark: SparkSession) -> None:
    decoder = Decoder(Format("json", "user STRING, n INT"), Format("bytes"))
    data = [b'{"user":"a","n":1}', b'{"n":2}', b'{"n":"x"}', b"[]", b"", None]
    expected = [{"user": "a", "n": 1}, {"user": None, "n": 2}, BROKEN, BROKEN, BROKEN, None]
    assert decoded(spark, decoder, data, keys=True) == expected


@pytest.mark.parametrize("name", list(GOOD))
def test_a_primitive_is_written_as_the_serde_writes_it(spark: SparkSession, name: str) -> None:
    """Both ways at once: read with the format, carried through a step, written with the format, as key and as value."""
    steps = [{"name": "same", "from": "in", "select": {"value": "value"}}]
    sinks = [{"from": "same", "topic": "out", "key": {"format": name}, "value": {"format": name}}]
    pipeline = Pipeline(spark, topology_of([source(name, key=name)], steps, sinks))
    serde = key_serde(Format(name))
    data = [serde.encode(value) for value in GOOD[name]] + [None]
    result = pipeline.run(*(Record(each, each) for each in data))
    assert [(key, value) for key, value, _ in sent(result.emissions, "out")] == [(each, each) for each in data]


def test_a_written_object_has_all_columns_in_order_with_nulls_and_microseconds(spark: SparkSession) -> None:
    select = {
        "b": "a",
        "text": "s",
        "at": "t",
        "local": "cast(t as timestamp_ntz)",
        "day": "cast(t as date)",
        "yes": "a > 0",
        "many": "array(a, null)",
        "inner": "named_struct('x', a, 'y', cast(null as int))",
        "price": "cast(1.50 as decimal(5,2))",
        "odd name": "1",
    }
    topology = topology_of(
        [source(schema="a BIGINT, s STRING, t TIMESTAMP")],
        [{"name": "all", "from": "in", "select": select}],
        [{"from": "all", "topic": "out"}],
    )
    value = '{"a":1,"s":"\u00fc\\"","t":"2024-01-02T03:04:05.000001Z"}'.encode()
    result = Pipeline(spark, topology).run(Record(b"k", value), Record(b"k", b"{}"), Record(b"k", None))
    first, nulls, gone = (value for _, value, _ in sent(result.emissions, "out"))
    assert gone is None
    assert list(orjson.loads(first or b"").items()) == [
        ("b", 1),
        ("text", 'ü"'),
        ("at", "2024-01-02T03:04:05.000001Z"),
        ("local", "2024-01-02T03:04:05.000001"),
        ("day", "2024-01-02"),
        ("yes", True),
        ("many", [1, None]),
        ("inner", {"x": 1, "y": None}),
        ("price", 1.5),
        ("odd name", 1),
    ]
    assert orjson.loads(nulls or b"") == dict.fromkeys(select) | {
        "many": [None, None],
        "inner": {"x": None, "y": None},
        "price": 1.5,
        "odd name": 1,
    }
