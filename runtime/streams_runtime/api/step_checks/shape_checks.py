"""Checks of one source, step or sink by itself: do its fields belong together?"""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.checks.process_checks import process_shape_mistakes
from streams_runtime.api.flow.step_graph import is_suppressed
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.reading.legal_names import dedupe_store, part_name_problem, suppress_store
from streams_runtime.api.reading.readable_parts import Part, Parts
from streams_runtime.api.schemas.avro_checks import avro_read_mistakes, avro_written_mistakes
from streams_runtime.api.schemas.ddl_schema import name_problems, parse_schema
from streams_runtime.api.schemas.json_schema_checks import json_read_mistakes, json_written_mistakes
from streams_runtime.api.schemas.proto_checks import proto_read_mistakes, proto_written_mistakes
from streams_runtime.api.step_checks.dedupe_checks import dedupe_shape_mistakes
from streams_runtime.api.step_checks.grouped_table_checks import grouping_shape_mistakes
from streams_runtime.api.step_checks.stream_join_checks import join_shape_mistakes
from streams_runtime.api.step_checks.table_stream_checks import suppress_shape_mistakes
from streams_runtime.api.step_checks.window_checks import window_mistakes
from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.api.steps.stream_steps_spec import PeekSpec
from streams_runtime.api.steps.topology_spec import EVERY, VERBS, FormatSpec, SinkSpec, SourceSpec, StepSpec
from streams_runtime.errors import Mistake


def shape_mistakes(parts: Parts) -> Iterator[Mistake]:
    """What can be said of each source, step and sink without looking at the others."""
    if parts.topology is not None and not parts.sources:
        yield _without_sources(parts.topology.python)
    sources = [source.model for source in parts.sources if source.model]
    if sources and all(each.table is not None and each.table.global_ for each in sources):
        found = "global tables alone, which give no instance anything to process"
        remedy = "add the stream that is joined with them, or leave global out of one"
        yield Mistake("spec.topology.sources", found, remedy)
    for source in parts.sources:
        if source.model:
            yield from _source(source.model, source.path)
    for step in parts.steps:
        if step.model:
            yield from _column_names(step.model, step.path)
            if step.clean:
                yield from _step(step, step.model)
            yield from _aggregate_names(step.model, step.path)
    for sink in parts.sinks:
        if sink.model:
            yield from _sink(sink.model, sink.path)


def _sink(sink: SinkSpec, path: str) -> Iterator[Mistake]:
    yield from _topics(sink, path)
    for field, spec in (("key", sink.key), ("value", sink.value)):
        yield from _message_of_another(spec, under(path, field))
        if spec is not None and spec.format == "avro":
            yield from avro_written_mistakes(spec, field, under(path, field))
        elif spec is not None and spec.format == "protobuf":
            yield from proto_written_mistakes(spec, under(path, field))
        elif spec is not None and spec.format == "jsonschema":
            yield from json_written_mistakes(spec, field, under(path, field))
        elif spec is not None and spec.schema_ is not None:
            found = "a schema for what is written"
            yield Mistake(under(path, field, "schema"), found, "leave it out; columns are written as they are")


def _topics(sink: SinkSpec, path: str) -> Iterator[Mistake]:
    """Which topics a sink writes: one that it names, or those that an expression names."""
    if sink.topic is not None and sink.topic_by is not None:
        yield Mistake(under(path, "topicBy"), "topicBy beside topic", "give one of the two")
    if sink.topic is None and sink.topic_by is None:
        remedy = "give topic, or topicBy with an expression that names one"
        yield Mistake(path, "a sink without a topic", remedy)
    if sink.topic_by is not None and sink.partition_by is not None:
        found = "partitionBy beside topicBy is not there yet"
        yield Mistake(under(path, "partitionBy"), found, "use a sink for each topic behind a split, or leave one out")
    if sink.topics is not None and sink.topic_by is None:
        found = "topics without topicBy"
        yield Mistake(under(path, "topics"), found, "give topicBy, which says who goes where, or topic alone")
    if sink.topics is not None and not sink.topics:
        found = "an empty list, so that every record would be refused"
        yield Mistake(under(path, "topics"), found, "list the topics, or leave it out to allow any that is there")
    first: dict[str, int] = {}
    for index, topic in enumerate(sink.topics or ()):
        if first.setdefault(topic, index) != index:
            yield Mistake(under(path, "topics", index), f"the topic {topic!r} is listed twice", "leave one of them out")
    for field, spec in (("key", sink.key), ("value", sink.value)) if sink.topic_by is not None else ():
        if spec is not None and spec.format in REGISTERED:
            found = f"{spec.format} is not there yet beside topicBy: its schema is registered for each topic by name"
            yield Mistake(under(path, field, "format"), found, "use json, or a sink for each topic behind a split")


def _without_sources(python: str | None) -> Mistake:
    if python is None:
        return Mistake("spec.topology.sources", "no source", "name at least one topic to read")
    # Whoever reads the resource without the user's code has to know its topics, tasks and stores.
    found = f"{python!r} stands alone, without the sources, steps and sinks that it makes"
    return Mistake("spec.topology.python", found, "apply what `streamsapp build FILE` prints, which has both")


def _source(source: SourceSpec, path: str) -> Iterator[Mistake]:
    for part, spec in (("value", source.value), ("key", source.key)):
        yield from _message_of_another(spec, under(path, part))
        if spec is not None and spec.format == "avro":
            yield from avro_read_mistakes(spec, part, under(path, part), source.table is not None)
        elif spec is not None and spec.format == "protobuf":
            yield from proto_read_mistakes(spec, part, under(path, part), source.table is not None)
        elif spec is not None and spec.format == "jsonschema":
            yield from json_read_mistakes(spec, part, under(path, part), source.table is not None)
        elif spec is not None:
            yield from _read_format(spec, under(path, part))


def _message_of_another(spec: FormatSpec | None, path: str) -> Iterator[Mistake]:
    if spec is not None and spec.message is not None and spec.format != "protobuf":
        found = f"a message for {spec.format}, which has none"
        yield Mistake(under(path, "message"), found, "leave it out, or use format protobuf")


def _read_format(spec: FormatSpec, path: str) -> Iterator[Mistake]:
    field = under(path, "schema")
    if spec.format != "json":
        if spec.schema_ is not None:
            yield Mistake(field, f"a schema for {spec.format}, which has none", "leave it out, or use format json")
    elif spec.schema_ is None:
        remedy = 'give the columns as Spark DDL, such as "user STRING, amount DOUBLE"'
        yield Mistake(field, "is missing; json that is read needs one", remedy)
    else:
        for problem in parse_schema(spec.schema_)[1]:
            yield problem.in_field(field)


def _column_names(step: StepSpec, path: str) -> Iterator[Mistake]:
    yield from _star(step, under(path, "select"))
    for field, columns in (("select", step.selected), ("aggregate", step.aggregate)):
        for problem in name_problems(tuple(columns or ())):
            yield problem.in_field(under(path, field))
    for problem in name_problems((step.flat_map.as_,)) if step.flat_map is not None else ():
        yield problem.in_field(under(path, "flatMap", "as"))


def _star(step: StepSpec, field: str) -> Iterator[Mistake]:
    if not step.selects_every:
        return
    if (step.select or {})[EVERY] != EVERY:
        found = f"{(step.select or {})[EVERY]!r} for *, which stands for all columns that are there"
        yield Mistake(under(field, EVERY), found, 'write "*": "*"')
    elif not step.selected:
        yield Mistake(field, "* alone leaves every column as it is", "name columns beside it, or leave select out")


def _aggregate_names(step: StepSpec, path: str) -> Iterator[Mistake]:
    for name in step.aggregate or ():
        if "." in name:
            yield Mistake(under(path, "aggregate", name), f"the column {name!r} has a dot in its name", "use _ or -")


def _step(part: Part[StepSpec], step: StepSpec) -> Iterator[Mistake]:
    path = part.path
    given = step.verbs
    if not given:
        *names, last = VERBS.values()
        yield Mistake(path, "a step that does nothing", f"give it {', '.join(names)} or {last}")
    elif len(given) > 1 and set(given) != {"where", "select"}:
        remedy = "make a step of each; only where and select go together"
        yield Mistake(path, f"{' and '.join(given)} in one step", remedy)
    if step.merge is None and step.from_ is None:
        yield Mistake(under(path, "from"), "is missing", "name the source or step whose records this step takes")
    if step.merge is not None and step.from_ is not None:
        yield Mistake(under(path, "from"), "from beside merge", "leave from out; merge names all inputs")
    for index, name in enumerate(step.merge or ()):
        if step.merge and name in step.merge[:index]:
            yield Mistake(under(path, "merge", index), f"{name!r} is listed twice", "list each input once")
    yield from _branches(step, path)
    if step.join is not None:
        yield from join_shape_mistakes(step.join, under(path, "join"))
    if step.peek is not None:
        yield from _peek(step.peek, under(path, "peek"))
    if step.dedupe is not None:
        yield from dedupe_shape_mistakes(step.dedupe, under(path, "dedupe"))
    if step.process is not None:
        yield from process_shape_mistakes(step.process, under(path, "process"))
    yield from _suppress(step, path)
    if step.window is not None:
        yield from window_mistakes(step.window, under(path, "window"), step.aggregate is not None)
    yield from grouping_shape_mistakes(step, path)
    yield from _store(step, under(path, "store"))


def _suppress(step: StepSpec, path: str) -> Iterator[Mistake]:
    if step.suppress is not None and step.window is None:
        found = "windows that close, in a step without windows"
        remedy = (
            "leave it out, or give the step a window; of other tables' changes it stands in toStream: {suppress: …}"
        )
        yield Mistake(under(path, "suppress"), found, remedy)
    if step.to_stream is not None and step.to_stream.suppress is not None:
        yield from suppress_shape_mistakes(step.to_stream.suppress, under(path, "toStream", "suppress"))


def _store(step: StepSpec, path: str) -> Iterator[Mistake]:
    if step.aggregate is not None and step.store is None:
        yield Mistake(path, "is missing", f"name the store of this aggregate, such as {step.name!r}")
    by_foreign_key = step.join is not None and step.join.key is not None  # told where it is known what is a table
    if step.aggregate is None and step.store is not None and not by_foreign_key:
        found = _no_store(step)
        remedy = (
            "leave it out; aggregates and joins of tables with key have one, sources with table, and toTable. To keep"
            " what another step over tables gives, put two behind it: toStream: {}, and toTable: {store: …}"
        )
        yield Mistake(path, found, remedy)


def _no_store(step: StepSpec) -> str:
    if step.join is not None:
        return "a store of what a join gives is not there yet, but for joins of two tables with key"
    if step.dedupe is not None:
        return f"a name for the store of a dedupe, which is called {dedupe_store(step.name)!r}"
    if step.process is not None:
        return "a store beside those of a process step, which are declared in process.stores"
    if is_suppressed(step):
        return f"a name for the store of a suppress, which is called {suppress_store(step.name)!r}"
    return "a store for a step without state"


def _branches(step: StepSpec, path: str) -> Iterator[Mistake]:
    if step.default is not None and step.split is None:
        found = "a default for a step that splits nothing"
        yield Mistake(under(path, "default"), found, "leave it out, or give the step a split")
    named = [(under(path, "split", index, "name"), branch.name) for index, branch in enumerate(step.split or ())]
    named += [(under(path, "default"), step.default)] if step.split is not None and step.default is not None else []
    first: dict[str, str] = {}
    for field, name in named:
        if problem := part_name_problem(name):
            yield Mistake(field, *problem)
        if name in first:
            yield Mistake(field, f"the branch {name!r} is there already, {first[name]}", "give it another name")
        first.setdefault(name, field)


def _peek(peek: PeekSpec, path: str) -> Iterator[Mistake]:
    if peek.log is None and peek.metric is None:
        yield Mistake(path, "a peek that shows nothing", "give it log, metric or both")
    if peek.value is not None and peek.metric is None:
        yield Mistake(under(path, "value"), "a value of no metric", "give the metric a name, or leave the value out")
    if peek.metric is not None and (problem := part_name_problem(peek.metric)):
        yield Mistake(under(path, "metric"), problem[0], "use letters, digits, and . _ - between them")
