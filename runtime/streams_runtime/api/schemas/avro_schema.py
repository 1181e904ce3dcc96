"""Avro schemas as a user declares them: JSON to columns, without Spark and without a registry."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from avro.errors import AvroException
from avro.schema import parse

from streams_runtime.api.flow.known_columns import Column, Columns, Type, type_named
from streams_runtime.api.schemas.ddl_schema import name_problems
from streams_runtime.api.spec.limits import DEEPEST, MOST, SHORTEN, TOO_DEEP, TOO_MANY, excess
from streams_runtime.api.sql.sql_tree import Problem

_PRIMITIVES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BINARY",
    "string": "STRING",
}
_LOGICAL = {
    ("int", "date"): "DATE",
    ("long", "timestamp-millis"): "TIMESTAMP",
    ("long", "timestamp-micros"): "TIMESTAMP",
    ("long", "local-timestamp-millis"): "TIMESTAMP_NTZ",
    ("long", "local-timestamp-micros"): "TIMESTAMP_NTZ",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WRITE_A_RECORD = 'give an Avro record as JSON: {"type": "record", "name": "Order", "fields": [{"name": …, "type": …}]}'


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A declared schema: the parsed JSON, and the Spark type of what is read with it, None where that is not known.

    `columns` are those of a record; None for every other type.
    """

    document: Any
    type: Type | None
    columns: Columns | None
    problems: tuple[Problem, ...] = ()


def parse_avro(text: str) -> AvroSchema:
    """The schema, with everything that is wrong with it."""
    try:
        document = json.loads(text)
    except RecursionError:
        return _refused(Problem(TOO_DEEP, SHORTEN))
    except ValueError as error:  # no JSON, or a number of more digits than Python reads
        return _refused(Problem(f"an Avro schema that is not JSON ({error})", _WRITE_A_RECORD))
    if too_large := excess(document):
        return _refused(Problem(too_large, SHORTEN))
    try:
        with warnings.catch_warnings():
            # Avro takes no notice of a logical type that does not fit its type, and neither does the pipeline.
            warnings.simplefilter("ignore")
            parse(text)
    except (AvroException, TypeError, ValueError, AttributeError) as error:
        return _refused(Problem(f"not an Avro schema: {error}", _WRITE_A_RECORD))
    walk = _Walk()
    ddl = walk.ddl(document, "")
    if walk.excess is not None:
        return _refused(Problem(f"{walk.excess}, named types written out", SHORTEN))
    columns = walk.columns_of(document) if _is_record(document) else None
    problems = [*walk.problems, *(name_problems(columns.names) if columns is not None else ())]
    return AvroSchema(document, type_named(ddl) if ddl else None, columns, tuple(problems))


def record_problems(schema: AvroSchema) -> Iterator[Problem]:
    """That a value's schema is no record: its fields are the columns."""
    if schema.columns is None and not schema.problems:
        found = f"a schema of {_shown(schema.document)}, which has no columns"
        yield Problem(found, _WRITE_A_RECORD)


def without_null(document: Any) -> Any:
    """The one other type of a union with null; any other schema as it is."""
    if isinstance(document, list):
        others = [each for each in document if each != "null"]
        return others[0] if len(others) == 1 else document
    return document


def _refused(problem: Problem) -> AvroSchema:
    return AvroSchema(None, None, None, (problem,))


def _is_record(document: Any) -> bool:
    return isinstance(document, dict) and document.get("type") == "record"


def _shown(document: Any) -> str:
    if isinstance(document, list):
        return "a union"
    return str(document.get("type") if isinstance(document, Mapping) else document)


@dataclass(slots=True)
class _Walk:
    """From the outside to the inside, with the named types so far and those that a type is inside of."""

    named: dict[str, Any] = field(default_factory=dict)
    inside: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    excess: str | None = None
    _depth: int = 0
    _count: int = 0

    def columns_of(self, record: Mapping[str, Any]) -> Columns:
        """The fields of the outermost record, which `ddl` has walked already."""
        silent = _Walk()
        kinds = ((each["name"], silent.ddl(each["type"], each["name"])) for each in record["fields"])
        return Columns(tuple(Column(name, type_named(ddl) if ddl else None) for name, ddl in kinds))

    def ddl(self, document: Any, at: str) -> str | None:
        """The Spark type; None where there is none, which is among the problems then, and where it is too large."""
        self._count += 1
        if self.excess is not None or self._depth > DEEPEST or self._count > MOST:
            self.excess = self.excess or (TOO_MANY if self._count > MOST else TOO_DEEP)
            return None
        self._depth += 1
        found = self._ddl(document, at)
        self._depth -= 1
        return found

    def _ddl(self, document: Any, at: str) -> str | None:
        if isinstance(document, list):
            return self._union(document, at)
        if isinstance(document, str):
            return self._by_name(document, at)
        kind = document["type"]
        if not isinstance(kind, str):
            return self.ddl(kind, at)
        match kind:
            case "record":
                found = self._record(document, at)
            case "enum" | "fixed":
                self._name(document, at)
                self.named[document["name"]] = document
                found = _decimal(document) or ("STRING" if kind == "enum" else "BINARY")
            case "array":
                inner = self.ddl(document["items"], f"{at}[]")
                found = None if inner is None else f"ARRAY<{inner}>"
            case "map":
                inner = self.ddl(document["values"], f"{at}{{}}")
                found = None if inner is None else f"MAP<STRING, {inner}>"
            case _:
                logical = _LOGICAL.get((kind, str(document.get("logicalType"))))
                found = logical or _decimal(document) or self.ddl(kind, at)
        return found

    def _by_name(self, name: str, at: str) -> str | None:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        if name in self.named and name not in self.inside:
            return self.ddl(self.named[name], at)
        if name in self.inside:
            self._refuse(at, f"the record {name} inside of itself", "Spark has no recursive types")
        else:
            self._refuse(at, f"the type {name}", "use a type that has values, named before it is used")
        return None

    def _union(self, branches: list[Any], at: str) -> str | None:
        others = [each for each in branches if each != "null"]
        if len(others) != 1:
            names = ", ".join(_shown(each) for each in branches)
            self._refuse(at, f"a union of {names}", "use one type, or a union of null and one type")
            return None
        if not at and len(branches) > 1:
            self._refuse(at, "a union with null", "leave null out: a record without key or value has no bytes")
            return None
        return self.ddl(others[0], at)

    def _record(self, document: Mapping[str, Any], at: str) -> str | None:
        self._name(document, at)
        name = document["name"]
        self.inside.append(name)
        fields = []
        for each in document["fields"]:
            self._name(each, at)
            inner = self.ddl(each["type"], f"{at}.{each['name']}" if at else each["name"])
            fields.append(None if inner is None else f"`{each['name']}`: {inner}")
        self.inside.pop()
        self.named[name] = document
        if not fields:
            self._refuse(at, f"the record {name} without fields", "give it at least one")
            return None
        return None if None in fields else f"STRUCT<{', '.join(each for each in fields if each)}>"

    def _name(self, document: Mapping[str, Any], at: str) -> None:
        name = str(document.get("name"))
        if not all(_NAME.fullmatch(part) for part in name.split(".")):
            self._refuse(at, f"the name {name!r}", "use letters, digits and _, beginning with no digit")

    def _refuse(self, at: str, found: str, remedy: str) -> None:
        self.problems.append(Problem(f"{found}{f' in the field {at}' if at else ''}", remedy))


def _decimal(document: Mapping[str, Any]) -> str | None:
    if document.get("logicalType") != "decimal" or document.get("type") not in ("bytes", "fixed"):
        return None
    return f"DECIMAL({document['precision']}, {document.get('scale', 0)})"
