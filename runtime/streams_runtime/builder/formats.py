"""Formats of keys and values, as they are given to a builder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Format = str | Mapping[str, Any]
"""The name of a format without settings (`"string"`), or a mapping with a format's fields, such as `json(…)` gives."""


def json(schema: str | None = None) -> Mapping[str, Any]:
    """JSON. `schema`, the columns as Spark DDL, is needed where it is read, and left out where it is written."""
    return {"format": "json"} if schema is None else {"format": "json", "schema": schema}


def protobuf(schema: str | None = None, message: str | None = None) -> Mapping[str, Any]:
    """Protobuf with a schema registry. `schema` is the text of a .proto, needed where it is read; where it is written
    and absent, one is made of the columns. `message` is the one in it that is meant; None: the first.
    """
    given = {"format": "protobuf", "schema": schema, "message": message}
    return {name: value for name, value in given.items() if value is not None}


def format_document(given: Format | None) -> Any:
    """The format as it stands in the resource; None where none was given."""
    return {"format": given} if isinstance(given, str) else given
