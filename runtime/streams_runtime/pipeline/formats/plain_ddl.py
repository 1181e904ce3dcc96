"""Schemas of json as plain values, for parts that do not know Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import DataType

Kind = str | Mapping[str, Any]
"""A type as Spark writes it in JSON: a name (`long`), or an object for a struct, an array or a map."""


def kind_of(ddl: str) -> Kind:
    """The type that a schema declares; Spark has to run, and its parser has accepted the schema before."""
    kind: Kind = DataType.fromDDL(ddl).jsonValue()
    return kind
