"""The reference of the resource's fields is what the models say, and says all of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from streams_runtime.api import parse_application
from streams_runtime.api.crd.definition import definition
from streams_runtime.api.crd.reference import EXAMPLE, as_markdown
from streams_runtime.api.crd.schema_sections import anchor, fields, sections
from streams_runtime.api.crd.schema_words import default_words, type_words, value_words

FILE = Path(__file__).parents[2] / "crds" / "README.md"
TEXT = as_markdown()
ROOT = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
FIELDS = [each for part in ("spec", "status") for each in fields(part, ROOT["properties"][part])]


def row_of(path: str) -> str:
    """The line of the reference that a field's address points to."""
    return next(line for line in TEXT.splitlines() if f'<a id="{path}"></a>' in line)


def test_the_file_is_what_the_models_give() -> None:
    assert FILE.read_text(encoding="utf-8") == TEXT, "run `make crd`"


def test_the_example_that_comes_first_is_accepted() -> None:
    block = TEXT.split("```yaml resource\n", 1)[1].split("```", 1)[0]
    assert block == EXAMPLE
    assert parse_application(yaml.safe_load(block)).name == "orders"


def test_every_field_of_the_definition_has_one_address() -> None:
    assert len(FIELDS) > 250
    for path, _ in FIELDS:
        assert TEXT.count(f'<a id="{anchor(path)}"></a>') == 1, path


def test_every_description_stands_in_the_reference() -> None:
    plain = re.sub(r"[\\`]", "", TEXT).replace("&lt;", "<")
    missing = [path for path, node in FIELDS if re.sub(r"[\\`]", "", node.get("description", "")) not in plain]
    assert missing == []


def test_every_link_within_the_page_leads_somewhere() -> None:
    addresses = re.findall(r'<a id="([^"]+)"></a>', TEXT)
    assert len(addresses) == len({*addresses})
    assert {*re.findall(r"\]\(#([^)]+)\)", TEXT)} - {*addresses} == set()


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    for table in re.findall(r"(?:^\|.*\n)+", TEXT, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table


def test_every_rule_stands_in_the_reference_with_its_message() -> None:
    def rules(node: Any) -> list[dict[str, str]]:
        if isinstance(node, list):
            return [rule for each in node for rule in rules(each)]
        if not isinstance(node, dict):
            return []
        return [*node.get("x-kubernetes-validations", ()), *(rule for each in node.values() for rule in rules(each))]

    found = rules(ROOT)
    assert len(found) > 25
    assert [rule for rule in found if f"{rule['message']}.<br>`{rule['rule']}`" not in TEXT] == []


@pytest.mark.parametrize(
    ("path", "cells"),
    [
        ("spec.replicas", "`replicas` | integer |  | `1` | 0 to 10000 |"),
        ("spec.kafka.secretRef.name", "`secretRef.name` | string | yes |  | not empty |"),
        ("spec.processing.commitInterval", "`commitInterval` | duration |  | `100ms` |  |"),
        ("spec.processing.onDeserializationError", "| string or object |  | `fail` | `fail`, `continue` |"),
        ("spec.processing.onProcessingError", "| string or object |  | `fail` | `fail`, `continue` |"),
        ("spec.processing.onProductionError", "| string or object |  | `fail` | `fail`, `continue` |"),
        ("spec.topology.steps.join.within", "`within` | duration or object |  |  |  |"),
        ("spec.topology.steps.suppress", "`suppress` | string |  |  | `untilWindowCloses` |"),
        ("spec.topology.steps.merge", "`merge` | list of string |  |  | at least 2 entries |"),
        ("spec.topologyChange", "`topologyChange` | string |  |  | `refuse`, `allow` |"),
        ("spec.restartOnChange", "| list of string |  |  | at most 2 entries; each `secrets`, `code` |"),
        ("spec.template.volumes.emptyDir.medium", '| string |  | `""` | `""`, `Memory` |'),
        ("spec.kafka.config", "`config` | map to string, number or boolean |  |  |  |"),
    ],
)
def test_a_row_says_type_requirement_default_and_values(path: str, cells: str) -> None:
    assert cells in row_of(path)


def test_a_large_object_has_a_section_and_a_small_one_stands_in_the_section_around_it() -> None:
    small = {"type": "object", "properties": {"a": {"type": "string"}}}
    large = {"type": "object", "properties": {name: {"type": "string"} for name in "abcd"}}
    inner = {"type": "object", "properties": {"small": small, "large": large}}
    found = sections("spec", {"type": "object", "properties": {"inner": inner}})
    assert [each.path for each in found] == ["spec", "spec.inner", "spec.inner.large"]
    assert [row.name for row in found[1].rows] == ["small", "small.a", "large"]


def test_an_object_whose_fields_are_listed_already_refers_to_them() -> None:
    twice = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    outer = {"type": "object", "properties": {"first": twice, "second": {**twice, "description": "Another."}}}
    (_, section) = sections("spec", {"type": "object", "properties": {"outer": outer}})
    assert [row.name for row in section.rows] == ["first", "first.a", "first.b", "second"]
    assert section.rows[-1].fields_at == "spec.outer.first"


def test_words_of_single_nodes() -> None:
    assert type_words({"type": "array", "items": {"type": "integer"}}) == "list of integer"
    assert default_words({"default": False}) == "`false`"
    assert value_words({"type": "string", "pattern": "^a|b$"}) == "matches `^a\\|b$`"
