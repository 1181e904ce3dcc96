"""An Avro schema that names types of other schemas, as one document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_NAMED = ("record", "error", "enum", "fixed")
_PRIMITIVE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def written_out(text: str, others: Sequence[str]) -> Any:
    """The schema's JSON, in which each named type of `others` is defined where it is first named.

    Raises:
        ValueError, RecursionError: one of the texts is no JSON, or nested too deeply.
    """
    document = json.loads(text)
    if not others:
        return document
    named: dict[str, dict[str, Any]] = {}
    for each in others:
        _define(json.loads(each), "", named)
    return _Writing(named).schema(document, "")


def _define(schema: Any, namespace: str, named: dict[str, dict[str, Any]]) -> None:
    """Collect a schema's named types by their full names, each with its namespace."""
    if isinstance(schema, list):
        for each in schema:
            _define(each, namespace, named)
    elif isinstance(schema, dict):
        if schema.get("type") in _NAMED:
            namespace, name = _place(schema, namespace)
            named.setdefault(name, {**schema, "name": name.rpartition(".")[2], "namespace": namespace})
        for each in _inside(schema):
            _define(each, namespace, named)


def _place(schema: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """The namespace and the full name of a named type that stands in a namespace."""
    name = str(schema.get("name", ""))
    own, dot, last = name.rpartition(".")
    if not dot:
        own = str(schema.get("namespace", namespace) or "")
    return own, f"{own}.{last}" if own else last


def _inside(schema: Mapping[str, Any]) -> list[Any]:
    fields = schema.get("fields")
    types = [each.get("type") for each in fields if isinstance(each, dict)] if isinstance(fields, list) else []
    return [*types, *(schema[name] for name in ("type", "items", "values") if name in schema)]


@dataclass(slots=True)
class _Writing:
    named: Mapping[str, Mapping[str, Any]]
    defined: set[str] = field(default_factory=set)

    def schema(self, given: Any, namespace: str) -> Any:
        """What stands in a namespace, written out."""
        if isinstance(given, list):
            return [self.schema(each, namespace) for each in given]
        if isinstance(given, str):
            return self._name(given, namespace)
        if not isinstance(given, dict):
            return given
        if given.get("type") in _NAMED:
            namespace, name = _place(given, namespace)
            if name in self.defined:
                return name
            self.defined.add(name)
        made = {**given, **{key: self.schema(given[key], namespace) for key in ("items", "values") if key in given}}
        if given.get("type") not in _NAMED:
            made["type"] = self.schema(given.get("type"), namespace)
        if isinstance(given.get("fields"), list):
            made["fields"] = [self._field(each, namespace) for each in given["fields"]]
        return made

    def _field(self, given: Any, namespace: str) -> Any:
        return {**given, "type": self.schema(given.get("type"), namespace)} if isinstance(given, dict) else given

    def _name(self, given: str, namespace: str) -> Any:
        if given in _PRIMITIVE or given in ("array", "map"):
            return given
        full = given if "." in given or not namespace else f"{namespace}.{given}"
        if full in self.defined or full not in self.named:
            return given
        return self.schema(self.named[full], namespace)
