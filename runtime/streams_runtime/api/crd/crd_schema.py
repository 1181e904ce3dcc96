"""From the models' JSON schema to a structural schema, as the API server wants it: no references, no null types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from streams_runtime.api.crd.crd_rules import FIELDS, RULES
from streams_runtime.api.spec.limits import LONGEST_FIELD, MOST_ENTRIES

Schema = dict[str, Any]

_TAKEN_OVER = (
    "description",
    "type",
    "default",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
)
_TURNED = ("title", "$ref", "anyOf", "items", "properties", "additionalProperties")
_OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def structural(model: type[BaseModel]) -> Schema:
    """The structural schema of a model, with the limits and rules of `crd_rules`.

    Raises ValueError for a piece of JSON schema that has no counterpart there: give the field a schema of its own
    in `crd_rules.FIELDS`.
    """
    schema = model.model_json_schema(mode="validation")
    return _Models(schema.pop("$defs", {})).model(model.__name__, schema)


def _bound(schema: Schema) -> None:
    """Give what has no limit of its own the one that all have, as `limits.oversized` tells it in files."""
    if schema.get("type") == "string" and "enum" not in schema:
        schema.setdefault("maxLength", LONGEST_FIELD)
    if schema.get("type") == "array":
        schema.setdefault("maxItems", MOST_ENTRIES)
    if "additionalProperties" in schema:
        schema.setdefault("maxProperties", MOST_ENTRIES)


class _Models:
    """The models that others refer to, by their classes' names."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas

    def model(self, name: str, schema: Schema) -> Schema:
        """A model as an object with its fields."""
        turned = self._node(schema, name)
        fields = turned.get("properties", {})
        for (owner, field), own in FIELDS.items():
            if owner == name:
                if field not in fields:
                    raise ValueError(f"crd_rules.FIELDS names {owner}.{field}, which is not there; correct the name")
                fields[field] = own(fields[field])
        if rules := RULES.get(name):
            turned["x-kubernetes-validations"] = [rule.schema() for rule in rules]
        return turned

    def _node(self, node: Schema, where: str) -> Schema:
        if "const" in node:  # a choice of one
            node = {**node, "enum": [node["const"]]}
            del node["const"]
        if unknown := set(node) - {*_TAKEN_OVER, *_TURNED}:
            raise ValueError(f"{where} has {', '.join(sorted(unknown))}, which a structural schema does not know")
        turned = self._referred(node, where)
        turned |= {key: node[key] for key in _TAKEN_OVER if key in node}
        if "items" in node:
            turned["items"] = self._node(node["items"], f"{where}[]")
        if "properties" in node:
            turned["properties"] = {
                name: self._node(inner, f"{where}.{name}") for name, inner in node["properties"].items()
            }
        match node.get("additionalProperties"):
            case True:
                turned |= _OPEN
            case dict() as values:
                turned["additionalProperties"] = self._node(values, f"{where}[…]")
            case _:
                pass  # False: the API server closes every object by itself
        _bound(turned)
        # "No default" is null in Python and a field that is not there in Kubernetes.
        if turned.get("default", ...) is None:
            del turned["default"]
        return turned

    def _referred(self, node: Schema, where: str) -> Schema:
        if reference := node.get("$ref"):
            name = str(reference).rsplit("/", 1)[-1]
            return self.model(name, self._schemas[name])
        choices = node.get("anyOf")
        if choices is None:
            return {}
        given = [choice for choice in choices if choice != {"type": "null"}]
        if len(given) != 1 or len(given) == len(choices):
            raise ValueError(f"{where} is one of several types, which a structural schema can't say")
        # What a file may leave empty (`key:`) is left empty in the cluster too.
        turned = self._node(given[0], where) | {"nullable": True}
        if "enum" in turned:
            # The API server finds no null in an enumeration, though it be there; of a pattern it asks nothing of null.
            turned["pattern"] = f"^({'|'.join(map(re.escape, turned.pop('enum')))})$"
        return turned
