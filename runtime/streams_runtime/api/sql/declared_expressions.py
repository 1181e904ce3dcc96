"""Every piece of Spark SQL in an application, with the field that it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.readable_parts import Parts
from streams_runtime.api.sql.python_aggregates import is_python, parse_python
from streams_runtime.api.sql.reduce_aggregates import is_reduce, parse_reduce
from streams_runtime.api.sql.sql_tree import SqlSyntaxError
from streams_runtime.api.steps.topology_spec import SourceSpec, StepSpec


@dataclass(frozen=True, slots=True)
class SqlField:
    """`kind` schema is DDL; everything else is one expression, an aggregate being the whole call.

    Of an aggregate in Python it is the columns that the class is given, as one struct; of reduce each part by itself.
    """

    path: str
    kind: Literal[
        "schema",
        "timestamp",
        "where",
        "select",
        "flatMap",
        "split",
        "peek",
        "headers",
        "keyBy",
        "groupBy",
        "aggregate",
        "key",
        "topicBy",
        "partitionBy",
    ]
    text: str


def sql_fields(parts: Parts) -> Iterator[SqlField]:
    """All of them, in the order of sources, steps and sinks."""
    for source in parts.sources:
        if source.model:
            yield from _of_source(source.model, source.path)
    for step in parts.steps:
        if step.model:
            yield from _of_step(step.model, step.path)
    for sink in parts.sinks:
        if sink.model and sink.model.topic_by is not None:
            yield SqlField(under(sink.path, "topicBy"), "topicBy", sink.model.topic_by)
        if sink.model and sink.model.partition_by is not None:
            yield SqlField(under(sink.path, "partitionBy"), "partitionBy", sink.model.partition_by)


def _of_source(source: SourceSpec, path: str) -> Iterator[SqlField]:
    for field, spec in (("key", source.key), ("value", source.value)):
        if spec is not None and spec.schema_ is not None and spec.format == "json":
            yield SqlField(under(path, field, "schema"), "schema", spec.schema_)
    if source.timestamp is not None:
        yield SqlField(under(path, "timestamp"), "timestamp", source.timestamp)


def _of_step(step: StepSpec, path: str) -> Iterator[SqlField]:
    if step.where is not None:
        yield SqlField(under(path, "where"), "where", step.where)
    for name, text in step.selected.items():
        yield SqlField(under(path, "select", name), "select", text)
    if step.flat_map is not None:
        yield SqlField(under(path, "flatMap", "explode"), "flatMap", step.flat_map.explode)
    for index, branch in enumerate(step.split or ()):
        yield SqlField(under(path, "split", index, "where"), "split", branch.where)
    for field, given in (("log", step.peek.log), ("value", step.peek.value)) if step.peek is not None else ():
        if given is not None:
            yield SqlField(under(path, "peek", field), "peek", given)
    for name, text in (step.headers or {}).items():
        yield SqlField(under(path, "headers", name), "headers", text)
    yield from _of_keys(step, path)
    for name, text in (step.aggregate or {}).items():
        yield from _of_aggregate(under(path, "aggregate", name), text)
    if step.join is not None and step.join.key is not None:
        yield SqlField(under(path, "join", "key"), "key", step.join.key)
    for name, text in (step.join.select if step.join is not None else {}).items():
        yield SqlField(under(path, "join", "select", name), "select", text)


def _of_keys(step: StepSpec, path: str) -> Iterator[SqlField]:
    """What decides where records go."""
    if step.key_by is not None:
        yield SqlField(under(path, "keyBy"), "keyBy", step.key_by)
    if step.repartition is not None and step.repartition.partition_by is not None:
        yield SqlField(under(path, "repartition", "partitionBy"), "partitionBy", step.repartition.partition_by)
    if step.group_by is not None:
        yield SqlField(under(path, "groupBy"), "groupBy", step.group_by)


def _of_aggregate(path: str, text: str) -> Iterator[SqlField]:
    with suppress(SqlSyntaxError):  # a call that can't be read is told by the checks of its form
        if is_python(text):
            yield SqlField(path, "aggregate", parse_python(text)[1])
        elif is_reduce(text):
            for part in parse_reduce(text).expressions:
                yield SqlField(path, "aggregate", part)
        else:
            yield SqlField(path, "aggregate", text)
