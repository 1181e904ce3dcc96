"""The definition that the API server gets is what the models say."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import BaseModel, WithJsonSchema

from streams_runtime.api.crd import crd_schema
from streams_runtime.api.crd import definition as crd
from streams_runtime.api.crd.crd_rules import FIELDS, RESOURCE_RULES, RULES
from streams_runtime.api.spec.spec_model import Model

ROOT = Path(__file__).parents[2]
FILE = ROOT / "crds" / "streamsapplications.yaml"


# A definition takes a quarter of a second to make, and none of these tests changes it.
definition = cache(crd.definition)
as_yaml = cache(crd.as_yaml)


def version() -> dict[str, Any]:
    return definition()["spec"]["versions"][0]


def schema_at(path: str) -> dict[str, Any]:
    schema = version()["schema"]["openAPIV3Schema"]
    for name in path.strip(".").split("."):
        schema = schema["properties"][name]
    return schema


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}[]")


@cache
def every_node() -> list[tuple[str, dict[str, Any]]]:
    return list(nodes(version()["schema"]["openAPIV3Schema"]))


def test_bounds_are_whole_numbers_as_doubles_too():
    """The API server reads them as doubles: 2^63 - 1 becomes 2^63, which is the least number there."""
    bounds = {
        f"{path} {key}": node[key] for path, node in every_node() for key in ("minimum", "maximum") if key in node
    }
    assert bounds
    assert {where: bound for where, bound in bounds.items() if abs(bound) >= 1 << 53} == {}


def test_the_file_is_what_the_models_give():
    remedy = "run `python -m streams_runtime.api.crd.definition > crds/streamsapplications.yaml`"
    assert FILE.read_text(encoding="utf-8") == as_yaml(), remedy


def test_the_file_reads_back_as_the_definition():
    assert yaml.load(FILE.read_text(encoding="utf-8"), yaml.CSafeLoader) == definition()


def test_every_node_of_the_schema_has_a_type_or_says_why_not():
    untyped = [
        path
        for path, node in every_node()
        if "type" not in node
        and not node.get("x-kubernetes-preserve-unknown-fields")
        and not node.get("x-kubernetes-int-or-string")
    ]
    assert untyped == []


def test_nothing_of_plain_json_schema_is_left():
    foreign = [path for path, node in every_node() if {"$ref", "title", "const", "allOf"} & set(node)]
    assert foreign == []
    assert "additionalProperties: false" not in as_yaml()


def test_every_field_of_the_spec_is_described():
    nodes_by_path = dict(every_node())
    wanted = [path for path in nodes_by_path if path.startswith(".spec.") and not path.endswith("[]")]
    assert wanted
    assert [path for path in wanted if not nodes_by_path[path].get("description")] == []


def test_every_text_list_and_mapping_of_the_spec_has_a_bound():
    keywords = {"string": "maxLength", "array": "maxItems"}
    unbound = [
        path
        for path, node in every_node()
        if path.startswith(".spec")
        and (
            (keywords.get(node.get("type", ""), "") not in {"", *node} and "enum" not in node)
            or ("additionalProperties" in node and "maxProperties" not in node)
        )
    ]
    assert unbound == []
    assert schema_at(".spec.applicationId")["maxLength"] == 200, "a limit of its own is kept"
    assert schema_at(".spec.restartOnChange")["maxItems"] == 2


def models(model: type[Model] = Model) -> list[type[Model]]:
    return [each for sub in model.__subclasses__() for each in (sub, *models(sub))]


def test_every_field_of_the_models_is_in_the_schema():
    names = {path.rsplit(".", 1)[-1].removesuffix("[]") for path, _ in every_node()}
    not_in_spec = {"StreamsApplication", "MetadataSpec", "OnRecordError", "ResetTarget"}
    fields = {
        field.alias for model in models() if model.__name__ not in not_in_spec for field in model.model_fields.values()
    }
    assert fields - names == set()


def test_every_rule_is_in_the_definition():
    given = {rule["rule"] for _, node in every_node() for rule in node.get("x-kubernetes-validations", ())}
    wanted = {rule.rule for rules in (*RULES.values(), RESOURCE_RULES) for rule in rules}
    assert wanted - given == set()


def test_every_message_says_what_would_do():
    rules = [rule for _, node in every_node() for rule in node.get("x-kubernetes-validations", ())]
    assert [rule["message"] for rule in rules if not (set(";(") & set(rule["message"]))] == []


def test_defaults_are_the_models_own():
    assert schema_at("spec.replicas")["default"] == 1
    assert schema_at("spec.internalTopics.setup")["default"] == "automatic"
    assert schema_at("spec.processing.commitInterval")["default"] == "100ms"
    assert schema_at("spec.processing.pollDuration")["default"] == "100ms"
    assert schema_at("spec.processing.onDeserializationError")["default"] == "fail"
    assert schema_at("spec.processing.onProcessingError")["default"] == "fail"
    assert schema_at("spec.processing.onProductionError")["default"] == "fail"


def test_a_field_without_a_default_may_be_left_empty():
    assert schema_at("spec.applicationId")["nullable"] is True
    assert "default" not in schema_at("spec.applicationId")
    effect = schema_at("spec.template.tolerations")["items"]["properties"]["effect"]
    assert (effect["nullable"], effect["pattern"]) == (True, "^(NoSchedule|PreferNoSchedule|NoExecute)$")
    assert "enum" not in effect


def test_columns_show_fields_that_the_status_has():
    paths = [column["jsonPath"] for column in version()["additionalPrinterColumns"]]
    assert paths.pop() == ".metadata.creationTimestamp"
    assert [schema_at(path)["type"] for path in paths] == [
        column["type"] for column in version()["additionalPrinterColumns"][:-1]
    ]


def test_the_scale_subresource_names_fields_that_are_there():
    scale = version()["subresources"]["scale"]
    assert {path: schema_at(path)["type"] for path in scale.values()} == {
        ".spec.replicas": "integer",
        ".status.replicas": "integer",
        ".status.selector": "string",
    }


def test_schema_words_without_a_counterpart_are_refused_by_name():
    class Odd(BaseModel):
        field: Annotated[int, WithJsonSchema({"type": "integer", "multipleOf": 3})]

    with pytest.raises(ValueError, match=r"Odd\.field has multipleOf"):
        crd_schema.structural(Odd)


def test_a_field_of_several_types_is_refused_by_name():
    class Odd(BaseModel):
        field: int | str

    with pytest.raises(ValueError, match=r"Odd\.field is one of several types"):
        crd_schema.structural(Odd)


def test_a_limit_for_a_field_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(crd_schema, "FIELDS", {**FIELDS, ("TableSpec", "stroe"): lambda schema: schema})
    with pytest.raises(ValueError, match=r"TableSpec\.stroe, which is not there"):
        crd.definition()
