"""What the pages for users of Kafka Streams say is here is shown by their own examples, which run."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from documents import ROOT, Block, Document
from from_kafka_streams import METHODS, SETTINGS, MethodRow, SettingRow, method_rows, setting_rows

import streams_runtime
from streams_runtime import StreamsBuilder
from streams_runtime.kafka.client.client_properties import client_properties

CLASSES = {
    "KStream": streams_runtime.KStream,
    "KTable": streams_runtime.KTable,
    "KGroupedStream": streams_runtime.KGroupedStream,
    "KGroupedTable": streams_runtime.KGroupedTable,
    "TimeWindowedKStream": streams_runtime.WindowedKStream,
    "SessionWindowedKStream": streams_runtime.WindowedKStream,
}
HERE = [row for row in method_rows() if row.python is not None]


def _only(page: Document, *words: str) -> Block:
    (block,) = (each for each in page.blocks if each.words == words)
    return block


def _example() -> str:
    return _only(METHODS, "python").text


def _spec() -> dict[str, Any]:
    spec = yaml.safe_load(_only(SETTINGS, "yaml", "resource").text)["spec"]
    assert isinstance(spec, dict)
    return spec


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """Every field, with those around it, of the topology that the page's example makes."""
    file = tmp_path_factory.mktemp("page") / "example.py"
    file.write_text(_example(), encoding="utf-8")
    builder = runpy.run_path(str(file))["builder"]
    assert isinstance(builder, StreamsBuilder)
    return frozenset(_fields(builder.document))


def _fields(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield f"{path}{name}"
            yield from _fields(each, "" if not path and name in ("sources", "steps") else f"{path}{name}.")
    elif isinstance(value, list):
        for each in value:
            yield from _fields(each, path)


@pytest.mark.parametrize("row", HERE, ids=lambda row: f"{row.kind}.{row.method}")
def test_a_method_that_is_here_is_called_by_the_example(row: MethodRow, declared: frozenset[str]) -> None:
    called = {each.attr for each in ast.walk(ast.parse(_example())) if isinstance(each, ast.Attribute)}
    assert row.python in called
    assert callable(getattr(CLASSES[row.kind], str(row.python)))
    assert row.file in declared


def test_a_row_has_both_forms_or_says_the_way_around() -> None:
    rows = method_rows()
    assert [row for row in rows if (row.python is None) != (row.file is None)] == []
    assert [row for row in rows if row.python is None and len(row.note) < len("the same")] == []
    assert len(HERE) > len(CLASSES)


def test_a_field_that_no_step_of_the_example_has_is_not_taken_for_shown(declared: frozenset[str]) -> None:
    assert {"where", "join.type", "sinks", "window.tumbling.size"} <= declared
    assert "cogroup" not in declared


@pytest.mark.parametrize("row", [row for row in setting_rows() if row.field is not None], ids=lambda row: row.setting)
def test_a_setting_that_is_here_stands_in_the_resource_of_the_page(row: SettingRow) -> None:
    assert row.field in {*_fields(_spec())}


def test_a_setting_without_a_field_says_why() -> None:
    assert [row for row in setting_rows() if row.field is None and len(row.note) < len("the same")] == []


def test_clients_take_the_properties_of_the_page() -> None:
    """The block's own test reads the resource; whether librdkafka knows a property only a client can say."""
    kafka = _spec()["kafka"]
    given = client_properties(kafka["bootstrapServers"], kafka["config"])
    assert {*kafka["config"]} <= {*given}


def test_fields_that_notes_name_exist() -> None:
    """In code and with a dot between small letters: fields of the resource or properties of clients and topics."""
    reference = (ROOT / "crds" / "README.md").read_text(encoding="utf-8")
    named = {
        each for row in setting_rows() for each in re.findall(r"`((?:processing|kafka|template|state)\.\w+)", row.note)
    }
    assert {"processing.maxBatchRecords", "template.securityContext"} <= named
    assert [
        each for each in sorted(named) if f"`spec.{each}`" not in reference and f'"spec.{each}"' not in reference
    ] == []
