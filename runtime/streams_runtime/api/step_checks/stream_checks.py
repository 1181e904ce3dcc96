"""Checks of what flows between steps: columns that exist, keys, tables, merges, what a sink can write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from streams_runtime.api.flow.flows import UNKNOWN, Stream, merged_streams, streams_of
from streams_runtime.api.flow.known_columns import Columns, Type, key_format, same_type, shown_type
from streams_runtime.api.flow.step_graph import inputs_of_step, is_regrouped
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.readable_parts import Parts
from streams_runtime.api.schemas.avro_checks import avro_columns_mistakes
from streams_runtime.api.schemas.json_schema_checks import json_columns_mistakes
from streams_runtime.api.schemas.proto_checks import proto_columns_mistakes
from streams_runtime.api.sql.aggregate_calls import aggregate_problems
from streams_runtime.api.sql.reduce_aggregates import is_reduce, merging_problem
from streams_runtime.api.sql.scalars import condition_problems, scalar_problems
from streams_runtime.api.sql.sql_tree import SqlSyntaxError
from streams_runtime.api.step_checks.dedupe_checks import dedupe_mistakes
from streams_runtime.api.step_checks.global_table_checks import global_input_mistakes, on_mistakes
from streams_runtime.api.step_checks.grouped_table_checks import grouped_table_mistakes
from streams_runtime.api.step_checks.join_checks import join_mistakes
from streams_runtime.api.step_checks.merge_checks import merge_mistakes
from streams_runtime.api.step_checks.processing_error_checks import processing_error_mistakes
from streams_runtime.api.step_checks.stream_join_checks import stream_join_mistakes
from streams_runtime.api.step_checks.stream_step_checks import (
    sink_partition_mistakes,
    sink_topic_mistakes,
    stream_step_mistakes,
    table_mistakes,
)
from streams_runtime.api.step_checks.table_checks import (
    history_input_mistakes,
    history_source_mistakes,
    table_source_mistakes,
    table_step_mistakes,
)
from streams_runtime.api.step_checks.table_stream_checks import table_stream_mistakes
from streams_runtime.api.steps.format_names import OF_COLUMNS, REGISTERED
from streams_runtime.api.steps.topology_spec import OF_RECORDS, SinkSpec, SourceSpec, StepSpec
from streams_runtime.errors import Mistake

_TIMES = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.BIGINT)


def stream_mistakes(parts: Parts) -> Iterator[Mistake]:
    """Everything that needs to know what reaches a step or a sink."""
    streams = streams_of(parts)
    sources = {source.name for source in parts.sources}
    steps = [step.model for step in parts.steps if step.model]
    models = [source.model for source in parts.sources if source.model]
    patterns = {source.name for source in models if source.topic_pattern is not None}
    for source in parts.sources:
        if source.model and source.model.timestamp is not None:
            yield from _timestamp(source.model, source.path, source.model.timestamp, streams)
            yield from table_source_mistakes(source.model, source.path)
        if source.model:
            yield from history_source_mistakes(source.model, source.path)
    for step in parts.steps:
        if step.model:
            visible = _input(step.model, streams).visible
            yield from _expressions(step.model, step.path, visible)
            yield from stream_step_mistakes(step.model, step.path, visible)
            wrong_inputs = [
                *global_input_mistakes(step.model, step.path, streams),
                *history_input_mistakes(step.model, step.path, streams),
            ]
            yield from wrong_inputs
            if step.clean and not wrong_inputs:
                yield from on_mistakes(step.model, step.path, streams)
                yield from _keys_and_tables(step.model, step.path, streams)
                yield from dedupe_mistakes(step.model, step.path, _input(step.model, streams))
                yield from _merge(step.model, step.path, streams)
                yield from merge_mistakes(step.model, step.path, streams, steps)
                yield from join_mistakes(step.model, step.path, streams, sources, steps)
                yield from grouped_table_mistakes(step.model, step.path, streams, steps)
                yield from table_step_mistakes(step.model, step.path, streams, steps)
                yield from table_stream_mistakes(step.model, step.path, streams, steps, patterns)
                yield from stream_join_mistakes(step.model, step.path, streams)
    yield from processing_error_mistakes(parts, streams)
    for sink in parts.sinks:
        if sink.model:
            yield from _sink(sink.model, sink.path, streams)


def _input(step: StepSpec, streams: Mapping[str, Stream]) -> Stream:
    inputs = inputs_of_step(step)
    return streams.get(inputs[0], UNKNOWN) if len(inputs) == 1 else UNKNOWN


def _timestamp(source: SourceSpec, path: str, text: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    field = under(path, "timestamp")
    visible = streams.get(source.name, UNKNOWN).visible
    problems = scalar_problems(text, visible)
    for problem in problems:
        yield problem.in_field(field)
    if not problems and visible is not None:
        kind = visible.type_of(text)
        if kind is not None and not kind.is_type(*_TIMES):
            remedy = "give a TIMESTAMP (to_timestamp(…)) or a BIGINT of milliseconds since 1970"
            yield Mistake(field, f"{text!r} is {shown_type(kind)}, which is no time", remedy)


def _expressions(step: StepSpec, path: str, visible: Columns | None) -> Iterator[Mistake]:
    scalars = [("where", step.where), ("keyBy", step.key_by), ("groupBy", step.group_by)]
    for field, text in scalars:
        for problem in scalar_problems(text, visible) if text is not None else ():
            yield problem.in_field(under(path, field))
    for name, text in step.selected.items():
        for problem in scalar_problems(text, visible):
            yield problem.in_field(under(path, "select", name))
    for name, text in (step.aggregate or {}).items():
        for problem in aggregate_problems(text, visible):
            yield problem.in_field(under(path, "aggregate", name))
        sessions = step.window is not None and step.window.session is not None
        if is_reduce(text) and (lacking := merging_problem(text, sessions)) is not None:
            yield Mistake(under(path, "aggregate", name), lacking.found, lacking.remedy)
    if step.where is not None and visible is not None:
        for problem in condition_problems(step.where, visible):
            yield problem.in_field(under(path, "where"))
    for field, text in scalars[1:]:
        if text is not None and visible is not None:
            yield from _key_type(text, under(path, field), visible)


def _key_type(text: str, field: str, visible: Columns) -> Iterator[Mistake]:
    try:
        kind = visible.type_of(text)
    except SqlSyntaxError:
        return
    if kind is not None and key_format(kind) is None:
        found = f"{text!r} is {shown_type(kind)}, for which keys have no format"
        yield Mistake(field, found, "cast it to STRING, BIGINT, INT or DOUBLE")


def _keys_and_tables(step: StepSpec, path: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    for name in inputs_of_step(step):
        if streams.get(name, UNKNOWN).table:
            yield from table_mistakes(step, path, name)
    tables = [name for name in inputs_of_step(step) if streams.get(name, UNKNOWN).table]
    for verb in step.verbs:
        of_records = verb in OF_RECORDS and not is_regrouped(step)
        for name in tables if of_records else ():
            found = f"{verb} of the table {name!r}, which has rows that change and no records"
            remedy = f"put a step toStream: {{}} before it, whose records are the table's changes, and {verb} that"
            if verb == "aggregate":
                remedy += "; or give it groupBy, which takes each row that changes out of its group again"
            yield Mistake(under(path, verb), found, remedy)
    if step.repartition is not None and _input(step, streams).windowed:
        found = f"repartition of {step.from_!r}, whose keys have windows, which no topic of the application's carries"
        remedy = "put a keyBy before it, which gives the records a key of their own"
        yield Mistake(under(path, "repartition"), found, remedy)
    unkeyed = _input(step, streams).unkeyed
    if step.aggregate is not None and unkeyed and not _input(step, streams).table:
        found = f"an aggregate of records without a key: {' and '.join(unkeyed)} declares none, or one in a registry"
        remedy = "put a keyBy step before it, or declare the source's key"
        yield Mistake(under(path, "aggregate"), found, remedy)


def _merge(step: StepSpec, path: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    known = [
        (name, each) for name, each in merged_streams(step, streams) if each.columns is not None and not each.table
    ]
    if not known:
        return
    field, (first, reference) = under(path, "merge"), known[0]
    for name, stream in known[1:]:
        if reference.columns is not None and stream.columns is not None:
            difference = _difference(first, reference.columns, name, stream.columns)
            if difference:
                yield Mistake(field, difference, "give them the same columns with a select before the merge")
        if not stream.unkeyed and not reference.unkeyed and _differ(reference.key, stream.key):
            found = f"the key of {name!r} is {_shown(stream.key)}, that of {first!r} {_shown(reference.key)}"
            yield Mistake(field, found, "give them keys of one type with a keyBy before the merge")


def _difference(first: str, a: Columns, second: str, b: Columns) -> str | None:
    """The differences of two inputs of a merge in words; None when none is known."""
    words = [f"{second!r} has no column {column.name!r}, which {first!r} has" for column in a if not b.get(column.name)]
    words += [
        f"{first!r} has no column {column.name!r}, which {second!r} has" for column in b if not a.get(column.name)
    ]
    for column in a:
        other = b.get(column.name)
        if other is not None and _differ(column.type, other.type):
            types = f"{_shown(column.type)} in {first!r} and {_shown(other.type)} in {second!r}"
            words.append(f"{column.name!r} is {types}")
    return "; ".join(words) or None


def _differ(a: Type | None, b: Type | None) -> bool:
    return a is not None and b is not None and not same_type(a, b)


def _shown(kind: Type | None) -> str:
    return shown_type(kind) if kind else "not known"


def _sink(sink: SinkSpec, path: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    stream = streams.get(sink.from_, UNKNOWN)
    yield from global_input_mistakes(sink, path, streams)
    yield from sink_topic_mistakes(sink, path, streams)
    yield from sink_partition_mistakes(sink, path, streams)
    yield from history_input_mistakes(sink, path, streams)
    value = sink.value
    if value is not None and value.format == "avro" and value.schema_ is not None and stream.columns is not None:
        yield from avro_columns_mistakes(value.schema_, stream.columns, under(path, "value", "schema"))
    if value is not None and value.format == "protobuf" and value.schema_ is not None and stream.columns is not None:
        at = under(path, "value", "schema")
        yield from proto_columns_mistakes(value.schema_, value.message, stream.columns, at)
    if value is not None and value.format == "jsonschema" and value.schema_ is not None and stream.columns is not None:
        yield from json_columns_mistakes(value.schema_, stream.columns, under(path, "value", "schema"))
    if stream.columns is not None and value is not None and value.format not in OF_COLUMNS:
        names = stream.columns.names
        if names != ("value",):
            found = f"{value.format} holds one column called value, found {', '.join(names)}"
            yield Mistake(under(path, "value", "format"), found, "use json, or select value in a step before the sink")
    have = key_format(stream.key) if stream.key is not None else None
    if sink.key is not None and have is not None and sink.key.format == "protobuf" and have != "json":
        found = f"protobuf for a key that is {_shown(stream.key)}, which is no message"
        remedy = "make it a struct with a keyBy: named_struct('name', …), or use another format"
        yield Mistake(under(path, "key", "format"), found, remedy)
    elif sink.key is not None and have is not None and sink.key.format not in (have, *REGISTERED):
        remedy = f"use {have}, or change the key with a keyBy: cast(… as …)"
        yield Mistake(under(path, "key", "format"), f"{sink.key.format} for a key that is {_shown(stream.key)}", remedy)
