"""Records of a topic as lines of JSON: formats, windowed keys, and what does not fit."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import avro_kit
import json_kit
import proto_kit
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schema_registry import Registry

from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.cli.records.consume import KeyWindows, RecordLines
from streams_runtime.cli.records.value_readers import RecordFormat
from streams_runtime.errors import ConfigException
from streams_runtime.state.window_keys import session_key

AT = datetime(2026, 1, 31, 8, 0, 0, 5000, UTC)
MS = 1_769_846_400_005


def record(key: bytes | None, value: bytes | None, headers: Any = ()) -> dict[str, Any]:
    return {"partition": 3, "offset": 17, "timestamp": AT, "key": key, "value": value, "headers": headers}


def line(lines: RecordLines, *columns: Any) -> dict[str, Any]:
    text = lines.line(record(*columns))
    assert text.endswith(b"\n")
    assert text.count(b"\n") == 1
    found: dict[str, Any] = json.loads(text)
    return found


STRINGS = RecordLines(RecordFormat.STRING, RecordFormat.JSON)


def test_a_record_is_one_line_with_its_place_its_time_and_both_of_its_parts() -> None:
    assert line(STRINGS, b"ada", b'{"total":1}') == {
        "partition": 3,
        "offset": 17,
        "timestamp": "2026-01-31T08:00:00.005Z",
        "key": "ada",
        "value": {"total": 1},
    }
    assert line(STRINGS, None, None).items() >= {"key": None, "value": None}.items()


def test_a_document_goes_on_as_it_was_written_digit_by_digit() -> None:
    given = b'{"n": 12345678901234567890123, "x": 1.50, "x": 2}'
    assert given in STRINGS.line(record(b"k", given))
    assert line(STRINGS, b"k", b'{\n "n": 1\n}')["value"] == {"n": 1}, "one of several lines becomes one"


def test_headers_are_in_their_order_and_may_have_one_name_twice() -> None:
    headers = [{"key": "a", "value": b"1"}, {"key": "b", "value": None}, {"key": "a", "value": b"\xff"}]
    assert line(STRINGS, b"k", b"1", headers)["headers"] == [{"a": "1"}, {"b": None}, {"a": "\ufffd"}]


@pytest.mark.parametrize(
    ("format", "data", "shown"),
    [
        ("long", (7).to_bytes(8, "big"), 7),
        ("int", (-7).to_bytes(4, "big", signed=True), -7),
        ("double", bytes.fromhex("7ff8000000000000"), "NaN"),
        ("bytes", b"\x00\xff", "AP8="),
        ("string", "ä".encode(), "ä"),
        ("json", b'"text"', "text"),
    ],
)
def test_keys_and_values_are_read_by_their_formats(format: str, data: bytes, shown: object) -> None:
    lines = RecordLines(RecordFormat(format), RecordFormat(format))
    assert line(lines, data, data).items() >= {"key": shown, "value": shown}.items()


def test_what_is_not_of_its_format_is_printed_whole_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    lines = RecordLines(RecordFormat.LONG, RecordFormat.JSON)
    found = line(lines, b"ada", b"{oops")
    assert found.items() >= {"key_base64": "YWRh", "value_base64": "e29vcHM="}.items()
    assert not {"key", "value"} & found.keys()
    line(lines, (1).to_bytes(8, "big"), b"also no document")
    lines.report()
    assert capsys.readouterr().err.splitlines() == [
        "1 times the key was not long; say what it is by --key-format",
        "2 times the value was not json; say what it is by --value-format",
    ]


def test_nothing_is_reported_where_all_fits(capsys: pytest.CaptureFixture[str]) -> None:
    line(STRINGS, b"ada", b"1")
    STRINGS.report()
    assert capsys.readouterr().err == ""


def test_windowed_keys_are_told_from_their_windows() -> None:
    times = RecordLines(RecordFormat.STRING, RecordFormat.JSON, KeyWindows.TIME)
    found = line(times, b"ada" + MS.to_bytes(8, "big"), b"1")
    assert found.items() >= {"key": "ada", "window": {"start": "2026-01-31T08:00:00.005Z"}}.items()
    sessions = RecordLines(RecordFormat.STRING, RecordFormat.JSON, KeyWindows.SESSION)
    found = line(sessions, session_key(b"ada", MS, MS + 1), b"1")
    assert found["key"] == "ada"
    assert found["window"] == {"start": "2026-01-31T08:00:00.005Z", "end": "2026-01-31T08:00:00.006Z"}


def test_a_key_that_is_too_short_for_a_window_is_printed_whole() -> None:
    found = line(RecordLines(RecordFormat.STRING, RecordFormat.JSON, KeyWindows.SESSION), b"ada", b"1")
    assert found["key"] == "ada"
    assert "window" not in found


@given(st.one_of(st.none(), st.binary()), st.one_of(st.none(), st.binary()), st.data())
def test_every_record_is_a_line_of_json(key: bytes | None, value: bytes | None, data: st.DataObject) -> None:
    plain = [each for each in RecordFormat if each not in REGISTERED]
    chosen = [data.draw(st.sampled_from(plain)) for _ in range(2)]
    lines = RecordLines(*chosen, data.draw(st.sampled_from([None, *KeyWindows])))
    assert line(lines, key, value).items() >= {"partition": 3, "offset": 17}.items()


@pytest.mark.parametrize("format", REGISTERED)
def test_a_format_of_a_registry_needs_one(format: str) -> None:
    with pytest.raises(ConfigException, match=rf"the format {format} needs a schema registry\..*--schema-registry"):
        RecordLines(RecordFormat.STRING, RecordFormat(format))


def test_formats_of_a_registry_are_read_by_the_schemas_that_they_were_written_with(registry: Registry) -> None:
    (order,) = avro_kit.serialized(
        registry, avro_kit.record("Order", avro_kit.field("user", "string")), [{"user": "é"}]
    )
    (wider,) = avro_kit.serialized(registry, avro_kit.record("Other", avro_kit.field("n", "long")), [{"n": 2**60}], "o")
    (message,) = proto_kit.serialized(registry, proto_kit.ORDER, [{"user": "ada", "amount": "7"}], "p")
    avro = RecordLines(RecordFormat.AVRO, RecordFormat.AVRO, registry=avro_kit.schemas(registry))
    assert line(avro, order, wider) == line(STRINGS, None, None) | {
        "key": {"user": "é"},
        "value": {"n": 2**60},
    }
    protobuf = RecordLines(RecordFormat.STRING, RecordFormat.PROTOBUF, registry=avro_kit.schemas(registry))
    assert line(protobuf, b"k", message)["value"] == {"user": "ada", "amount": 7, "note": ""}
    (document,) = json_kit.serialized(registry, json_kit.ORDER, [{"user": "é", "more": [1.0]}], "j")
    documents = RecordLines(RecordFormat.STRING, RecordFormat.JSONSCHEMA, registry=avro_kit.schemas(registry))
    assert line(documents, b"k", document)["value"] == {"user": "é", "more": [1.0]}


def test_bytes_without_an_id_and_of_a_schema_that_is_not_there_are_shown_as_they_are(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = RecordLines(RecordFormat.STRING, RecordFormat.AVRO, registry=avro_kit.schemas(registry))
    for data in (b"{}", b"\0\0\0\0\x63xyz", b""):
        assert line(lines, b"k", data)["value_base64"] == base64.b64encode(data).decode()
    lines.report()
    assert "3 times the value was not avro" in capsys.readouterr().err
