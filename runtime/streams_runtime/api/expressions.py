"""Every piece of Spark SQL in an application, with the field that it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from streams_runtime.api.parts import Parts
from streams_runtime.api.paths import under
from streams_runtime.api.topology_spec import SourceSpec, StepSpec


@dataclass(frozen=True, slots=True)
class SqlField:
    """`kind` schema is DDL; everything else is one expression, an aggregate being the whole call."""

    path: str
    kind: Literal["schema", "timestamp", "where", "select", "keyBy", "aggregate"]
    text: str


def sql_fields(parts: Parts) -> Iterator[SqlField]:
    """All of them, in the order of sources and steps."""
    for source in parts.sources:
        if source.model:
            yield from _of_source(source.model, source.path)
    for step in parts.steps:
        if step.model:
            yield from _of_step(step.model, step.path)


def _of_source(source: SourceSpec, path: str) -> Iterator[SqlField]:
    for field, spec in (("key", source.key), ("value", source.value)):
        if spec is not None and spec.schema_ is not None and spec.format == "json":
            yield SqlField(under(path, field, "schema"), "schema", spec.schema_)
    if source.timestamp is not None:
        yield SqlField(under(path, "timestamp"), "timestamp", source.timestamp)


def _of_step(step: StepSpec, path: str) -> Iterator[SqlField]:
    if step.where is not None:
        yield SqlField(under(path, "where"), "where", step.where)
    for name, text in (step.select or {}).items():
        yield SqlField(under(path, "select", name), "select", text)
    if step.key_by is not None:
        yield SqlField(under(path, "keyBy"), "keyBy", step.key_by)
    for name, text in (step.aggregate or {}).items():
        yield SqlField(under(path, "aggregate", name), "aggregate", text)
