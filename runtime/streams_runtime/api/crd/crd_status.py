"""The schema of the resource's status, from the models that the operator writes it through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from streams_runtime.api.status.resource_status import ApplicationStatus

Schema = dict[str, Any]

_OPEN = "x-kubernetes-preserve-unknown-fields"

_ORDER: Mapping[str, tuple[str, ...]] = {
    "ApplicationStatus": (
        *("observedGeneration", "state", "replicas", "readyReplicas", "ready", "selector", "tasks", "lag"),
        *("restoration", "internalTopics", "autoscaling", "deployed", "stable", "joined", "rolledBack", "instances"),
        "conditions",
    ),
    "InstanceStatus": (
        *("name", "spec", "restartNonce", "state", "ready", "tasks", "lag", "recordsLeft", "error"),
        *("shutdownRequested", "reason", "progressedAt", "leastRecordsLeft", "restarts", "lastCrash", "backoffUntil"),
    ),
}
"""Fields as people read them in the definition, where that is not the order in which they are written."""


def status_schema(model: type[BaseModel] = ApplicationStatus) -> Schema:
    """The structural schema of a status model. Values are nullable nowhere: what is not known is left out.

    Raises ValueError for a field of a type that a status has not: give `_field` the type.
    """
    schema = model.model_json_schema(mode="validation")
    return _Models({**schema.pop("$defs", {}), model.__name__: schema}).object(model.__name__)


class _Models:
    """The models that others refer to, by their classes' names."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas

    def object(self, name: str, description: str | None = None) -> Schema:
        """A model as an object with its fields; `description` None: its own."""
        schema = self._schemas[name]
        fields = {field: self._field(f"{name}.{field}", each) for field, each in schema["properties"].items()}
        order = _ORDER.get(name, tuple(fields))
        if set(order) != set(fields):
            raise ValueError(f"crd_status._ORDER has not the fields of {name}; give it {', '.join(fields)}")
        turned: Schema = {"type": "object", "description": description or schema["description"]}
        turned["properties"] = {field: fields[field] for field in order}
        return turned | {key: schema[key] for key in (_OPEN,) if key in schema}

    def _field(self, where: str, node: Schema) -> Schema:
        (given,) = (each for each in node.get("anyOf", (node,)) if each != {"type": "null"})
        description = {"description": node.get("description", where)}
        if reference := given.get("$ref"):
            return self.object(_name(reference), node["description"])
        match given["type"], given.get("items", {}):
            case "string", _:
                limits: Schema = {key: node[key] for key in ("enum", "format") if key in node}
                return {"type": "string", **limits, **description}
            case "boolean", _:
                return {"type": "boolean", **description}
            case "integer", _:
                return {"type": "integer", "format": "int64", **description}
            case "array", {"type": "string"}:
                return {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic", **description}
            case "array", {"$ref": reference}:
                return self._list(_name(reference), node)
        raise ValueError(f"{where} is of a type that a status has not")

    def _list(self, name: str, node: Schema) -> Schema:
        keys = node["x-kubernetes-list-map-keys"]
        item = self.object(name) | {"required": keys}
        if _OPEN not in item:
            item = {"type": "object", "required": keys, "properties": item["properties"]}
        return {
            "type": "array",
            "description": node["description"],
            "items": item,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
        }


def _name(reference: str) -> str:
    return reference.rsplit("/", 1)[-1]
