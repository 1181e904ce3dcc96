"""Formats of keys and values, as they are given to a builder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Format = str | Mapping[str, Any]
"""The name of a format without settings (`"string"`), or a mapping with a format's fields, such as `json(…)` gives."""


def json(schema: str | None = None) -> Mapping[str, Any]:
    """The JSON format: one object a value, its fields by the columns' names.

    `schema` lists the columns as Spark DDL, such as `"user STRING, amount DOUBLE"`. A source needs it, a sink has none.
    """
    return {"format": "json"} if schema is None else {"format": "json", "schema": schema}


def protobuf(schema: str | None = None, message: str | None = None) -> Mapping[str, Any]:
    """Protobuf with a schema registry, whose id of the schema stands in every record.

    `schema` is the text of a .proto file. A source needs it; for a sink without one the columns make it. `message`
    names the message in it; None: the first.
    """
    given = {"format": "protobuf", "schema": schema, "message": message}
    return {name: value for name, value in given.items() if value is not None}


def format_document(given: Format | None) -> Any:
    """The format as it stands in the resource; None where none was given."""
    return {"format": given} if isinstance(given, str) else given
