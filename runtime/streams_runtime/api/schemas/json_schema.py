"""JSON Schemas as a user declares them: JSON to columns, without Spark and without a registry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from streams_runtime.api.flow.known_columns import Column, Columns, Type, type_named
from streams_runtime.api.schemas.ddl_schema import name_problems
from streams_runtime.api.schemas.json_types import JsonType
from streams_runtime.api.schemas.json_validity import Validity, pointer
from streams_runtime.api.spec.limits import DEEPEST, MOST, SHORTEN, TOO_DEEP, TOO_MANY, excess
from streams_runtime.api.sql.sql_tree import Problem

_WRITE = 'give a JSON Schema of an object: {"type": "object", "properties": {"user": {"type": "string"}}}'
_ONE_TYPE = "use one type, or null and one type"
_COMBINED = ("allOf", "anyOf", "oneOf")
# What says of which type a value is; everything else only narrows that down.
_DECIDES = frozenset({"$ref", "type", "enum", "const", "properties", "items", "prefixItems", "additionalProperties"})
_NAMES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
_POINTER = re.compile(r"#(/.*)?")


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A declared schema: the parsed JSON, the type of its values, and the Spark type that they are read as.

    `columns` are the properties of an object; None for every other type, and where there are problems.
    """

    document: Any
    root: JsonType | None
    type: Type | None
    columns: Columns | None
    problems: tuple[Problem, ...] = ()


@lru_cache(maxsize=256)  # the operator asks for those of all applications, again and again
def parse_json_schema(text: str) -> JsonSchema:
    """The schema, with everything that is wrong with it."""
    document = _document(text)
    if isinstance(document, Problem):
        return _refused(document)
    walk = _Walk(document)
    root = walk.type_of(document, "#")
    if walk.excess is not None:
        return _refused(Problem(f"{walk.excess}, definitions written out", SHORTEN))
    if walk.problems or root is None:
        return _refused(*walk.problems)
    if root.nullable:
        remedy = "leave null out: a record without key or value has no bytes"
        return _refused(Problem("a value that may be null at #", remedy))
    return _parsed(document, root)


def _document(text: str) -> Any:
    """The JSON, once the library takes it for a schema; else what is wrong with it."""
    try:
        document = json.loads(text)
    except RecursionError:
        return Problem(TOO_DEEP, SHORTEN)
    except ValueError as error:  # no JSON, or a number of more digits than Python reads
        return Problem(f"a JSON Schema that is not JSON ({error})", _WRITE)
    if too_large := excess(document):
        return Problem(too_large, SHORTEN)
    if not isinstance(document, dict):
        return Problem("a JSON Schema that is no object", _WRITE)
    try:
        Validity(document)
    except ValueError as error:
        return Problem(f"no JSON Schema: {error}", "correct it there, by the draft that its $schema names")
    return document


def object_problems(schema: JsonSchema) -> Iterator[Problem]:
    """That a value's schema is of no object: its properties are the columns."""
    if schema.columns is None and not schema.problems and schema.root is not None:
        yield Problem(f"a schema of {schema.root.name}, which has no columns", _WRITE)


def _parsed(document: Any, root: JsonType) -> JsonSchema:
    if root.name != "object":
        return JsonSchema(document, root, type_named(root.ddl), None)
    if problems := tuple(name_problems(tuple(root.fields))):
        return _refused(*problems)
    columns = Columns(tuple(Column(name, type_named(each.ddl)) for name, each in root.fields.items()))
    return JsonSchema(document, root, type_named(root.ddl), columns)


def _refused(*problems: Problem) -> JsonSchema:
    return JsonSchema(None, None, None, None, problems)


@dataclass(slots=True)
class _Walk:
    """From the outside to the inside, with the places of the schemas that one is inside of."""

    document: Any
    inside: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    excess: str | None = None
    _count: int = 0

    def type_of(self, schema: Any, at: str) -> JsonType | None:
        """The type that the schema at this place stands for.

        None where it has none, which is among the problems then, and where all of it is too large.
        """
        self._count += 1
        if self.excess is not None or len(self.inside) > DEEPEST or self._count > MOST:
            self.excess = self.excess or (TOO_MANY if self._count > MOST else TOO_DEEP)
            return None
        if at in self.inside:
            return self._refuse(self.inside[-1], f"the schema {at} inside of itself", "Spark has no recursive types")
        if not isinstance(schema, dict):
            return self._refuse(at, "a schema that says of no type", 'give it a type, such as {"type": "string"}')
        if "$id" in schema and at != "#":
            return self._refuse(at, "an $id inside of a schema", "leave it out, and refer by # and the place")
        self.inside.append(at)
        found = self._type_of(schema, at)
        self.inside.pop()
        return found

    def _type_of(self, schema: Mapping[str, Any], at: str) -> JsonType | None:
        indirect = ["$ref"] if "$ref" in schema else []
        indirect += [each for each in _COMBINED if any(map(_decides, schema.get(each, ())))]
        beside = [each for each in schema if each in _DECIDES and each not in indirect]
        if len(indirect) > 1 or (indirect and beside):
            found = f"{indirect[0]} beside {(indirect[1:] + beside)[0]}"
            return self._refuse(at, found, "say in one of them what the type is")
        if not indirect:
            return self._by_name(schema, at)
        if indirect == ["$ref"]:
            return self._referenced(schema["$ref"], at)
        return self._combined(indirect[0], schema[indirect[0]], at)

    def _referenced(self, reference: str, at: str) -> JsonType | None:
        steps = [unquote(each).replace("~1", "/").replace("~0", "~") for each in reference.split("/")[1:]]
        try:
            target = self._at(steps) if _POINTER.fullmatch(reference) else None
        except (KeyError, IndexError, TypeError, ValueError):
            target = None
        if target is None:
            found = f"a reference to {reference}, which is no place in the schema itself"
            return self._refuse(at, found, "put it into $defs, and refer to #/$defs/…")
        return self.type_of(target, pointer(*steps))

    def _at(self, steps: Sequence[str]) -> Any:
        found = self.document
        for step in steps:
            found = found[int(step)] if isinstance(found, list) else found[step]
        return found

    def _combined(self, word: str, branches: Sequence[Any], at: str) -> JsonType | None:
        others = [(number, each) for number, each in enumerate(branches) if not _is_null(each)]
        with_null = len(others) < len(branches)
        if len(others) != 1 or (with_null and word == "allOf"):
            return self._refuse(at, f"{word} of {len(branches)} schemas", _ONE_TYPE)
        number, only = others[0]
        found = self.type_of(only, f"{at}/{word}/{number}")
        return None if found is None else replace(found, nullable=found.nullable or with_null)

    def _by_name(self, schema: Mapping[str, Any], at: str) -> JsonType | None:
        names = _type_names(schema)
        kinds = [each for each in names if each != "null"]
        if len(kinds) != 1:
            found = f"values of {', '.join(names)}" if names else "a schema that says of no type"
            return self._refuse(at, found, _ONE_TYPE)
        nullable = len(kinds) < len(names)
        match kinds[0]:
            case "array":
                return self._array(schema, at, nullable)
            case "object":
                return self._object(schema, at, nullable)
            case "string" if schema.get("format") in ("date", "date-time"):
                return JsonType(schema["format"], nullable)
            case name:
                return JsonType(name, nullable)

    def _array(self, schema: Mapping[str, Any], at: str, nullable: bool) -> JsonType | None:
        items = schema.get("items")
        if "prefixItems" in schema or not isinstance(items, dict):
            found = "an array whose items are not all of one schema"
            return self._refuse(at, found, 'give it "items" with a schema')
        element = self.type_of(items, f"{at}/items")
        return None if element is None else JsonType("array", nullable, element)

    def _object(self, schema: Mapping[str, Any], at: str, nullable: bool) -> JsonType | None:
        properties, more = schema.get("properties"), schema.get("additionalProperties")
        if not properties and isinstance(more, dict) and "patternProperties" not in schema:
            element = self.type_of(more, f"{at}/additionalProperties")
            return None if element is None else JsonType("map", nullable, element)
        if not properties:
            remedy = 'give it "properties", or "additionalProperties" with a schema, which makes it a map'
            return self._refuse(at, "an object without properties", remedy)
        here = f"{at}/properties"
        found = {name: self.type_of(each, f"{here}{pointer(name)[1:]}") for name, each in properties.items()}
        if at != "#":
            for problem in name_problems(tuple(found), inside=True):
                self._refuse(here, problem.found, problem.remedy)
        fields = {name: each for name, each in found.items() if each is not None}
        return JsonType("object", nullable, None, fields, frozenset(schema.get("required", ())))

    def _refuse(self, at: str, found: str, remedy: str) -> JsonType | None:
        self.problems.append(Problem(f"{found} at {at}", remedy))
        return None


def _decides(branch: Any) -> bool:
    return isinstance(branch, dict) and (not _DECIDES.isdisjoint(branch) or any(each in branch for each in _COMBINED))


def _is_null(branch: Any) -> bool:
    return isinstance(branch, dict) and "$ref" not in branch and _type_names(branch) == ["null"]


def _type_names(schema: Mapping[str, Any]) -> list[str]:
    """The names of the types that values may have, as `type` has them, or else as the values that are listed."""
    if "type" in schema:
        return [schema["type"]] if isinstance(schema["type"], str) else list(schema["type"])
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return list(dict.fromkeys(_NAMES[type(each)] for each in values))
