"""Schemas whose records may have no end are told from those whose records have one."""

from __future__ import annotations

from typing import Any

import pytest

from streams_runtime.api.schemas.avro_recursion import hostile
from streams_runtime.kafka.schema_registry import FoundSchema
from streams_runtime.pipeline.formats.avro.avro_writer_schemas import avro_writer_schemas


def record(name: str, *types: Any, **more: Any) -> dict[str, Any]:
    fields = [{"name": f"f{number}", "type": each} for number, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **more}


EMPTY = record("Empty")
NONE = {"type": "fixed", "name": "None_", "size": 0}


@pytest.mark.parametrize(
    "schema",
    [
        record("L", "long", ["null", "L"]),
        record("L", {"type": "array", "items": "L"}),
        record("L", {"type": "map", "values": ["null", {"type": "array", "items": "L"}]}),
        record("A", record("B", ["null", "A"])),
        record("L", ["null", "a.b.L"], namespace="a.b"),
        record("a.b.L", ["null", "L"]),
        record("a.L", record("M", ["null", "L"])),
    ],
)
def test_a_record_inside_of_itself_is_hostile(schema: Any) -> None:
    assert "inside of itself" in str(hostile(schema))


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        NONE,
        EMPTY,
        record("R", "null", EMPTY, NONE),
        record("Q", {"type": "fixed", "name": "Z", "size": 0}, "Z"),
    ],
)
def test_an_array_of_items_without_bytes_is_hostile(items: Any) -> None:
    assert "no bytes" in str(hostile(record("T", "long", {"type": "array", "items": items})))
    assert "no bytes" in str(hostile({"type": "array", "items": {"type": "array", "items": items}}))


def test_items_without_bytes_are_known_by_their_name_too() -> None:
    assert "no bytes" in str(hostile(record("T", EMPTY, {"type": "array", "items": "Empty"}, namespace="n")))


@pytest.mark.parametrize(
    "schema",
    [
        "long",
        ["null", "string"],
        record("T", "null", EMPTY, NONE),
        record("T", {"type": "array", "items": ["null"]}),
        record("T", {"type": "map", "values": "null"}),
        record("T", {"type": "array", "items": {"type": "array", "items": "int"}}),
        record("T", {"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["x"]}}, "E"),
        record("T", record("P", "int"), "P", {"type": "array", "items": "P"}),
        record("a.T", record("b.T", "int"), "b.T"),
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": {"type": "array", "items": "bytes"}},
    ],
)
def test_a_schema_whose_records_have_an_end_is_none(schema: Any) -> None:
    assert hostile(schema) is None


class Registry:
    def __init__(self, text: str) -> None:
        self._text = text

    def schema(self, id: int) -> FoundSchema:
        del id
        return FoundSchema(self._text, "AVRO")

    def id_of(self, subject: str, text: str, kind: str = "AVRO") -> int:
        raise AssertionError(subject, text, kind)


def test_a_writers_schema_that_is_hostile_is_a_problem_with_its_name() -> None:
    text = '{"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}'
    found = avro_writer_schemas(Registry(text)).problem(7)
    assert found is not None
    assert "the schema 7" in found
    assert "the record L stands inside of itself" in found
