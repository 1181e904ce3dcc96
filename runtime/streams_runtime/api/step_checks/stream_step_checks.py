"""Checks of the steps and sinks that only streams have: what they ask of the columns that reach them, and of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sqlglot import exp

from streams_runtime.api.flow.flows import UNKNOWN, Stream
from streams_runtime.api.flow.known_columns import Columns, shown_type
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.sql.scalars import condition_problems, moment_problems, scalar_problems
from streams_runtime.api.sql.sql_tree import SqlSyntaxError
from streams_runtime.api.steps.stream_steps_spec import FlatMapSpec, PeekSpec
from streams_runtime.api.steps.topology_spec import SinkSpec, StepSpec
from streams_runtime.errors import Mistake

_IN_TWO = "is another value for each branch, so that a record could be in two of them, or in none"


class _Wanted(NamedTuple):
    """What an expression has to give for each record."""

    types: tuple[exp.DType, ...]
    what: str
    remedy: str


_NAME = _Wanted(
    tuple(exp.DataType.TEXT_TYPES), "name of a topic", "give a STRING: cast(… as string), concat('orders-', …)"
)
_NUMBER = _Wanted(
    (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
    "number of a partition",
    "give an INT or a BIGINT: cast(… as int), pmod(hash(…), 4)",
)


def stream_step_mistakes(step: StepSpec, path: str, visible: Columns | None) -> Iterator[Mistake]:
    """What is wrong with the expressions and names of such a step; `visible` is None when the columns are not known."""
    if step.flat_map is not None:
        yield from _flat_map(step.flat_map, under(path, "flatMap"), visible)
    if step.peek is not None:
        yield from _peek(step.peek, under(path, "peek"), visible)
    for name, text in (step.headers or {}).items():
        for problem in scalar_problems(text, visible):
            yield problem.in_field(under(path, "headers", name))
    if step.repartition is not None and step.repartition.partition_by is not None:
        yield from _not_of(_NUMBER, step.repartition.partition_by, under(path, "repartition", "partitionBy"), visible)
    for index, branch in enumerate(step.split or ()):
        problems = scalar_problems(branch.where, visible)
        problems += () if problems else moment_problems(branch.where, _IN_TWO)
        if visible is not None:
            problems += condition_problems(branch.where, visible)
        for problem in problems:
            yield problem.in_field(under(path, "split", index, "where"))


def sink_partition_mistakes(sink: SinkSpec, path: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    """Those of a sink's `partitionBy`, which a table can't have: a row that is deleted has no columns to go by."""
    if sink.partition_by is None:
        return
    field, stream = under(path, "partitionBy"), streams.get(sink.from_, UNKNOWN)
    if stream.table:
        found = f"partitionBy of the table {sink.from_!r}, of which a row that is deleted has no columns to go by"
        yield Mistake(field, found, "put a step toStream: {} before the sink, whose records may go by _key")
    yield from _not_of(_NUMBER, sink.partition_by, field, stream.visible)


def sink_topic_mistakes(sink: SinkSpec, path: str, streams: Mapping[str, Stream]) -> Iterator[Mistake]:
    """Those of a sink's `topicBy`."""
    if sink.topic_by is not None:
        visible = streams.get(sink.from_, UNKNOWN).visible
        yield from _not_of(_NAME, sink.topic_by, under(path, "topicBy"), visible)


def _not_of(wanted: _Wanted, text: str, field: str, visible: Columns | None) -> Iterator[Mistake]:
    problems = scalar_problems(text, visible)
    for problem in problems:
        yield problem.in_field(field)
    if not problems and visible is not None:
        kind = visible.type_of(text)
        if kind is not None and not kind.is_type(*wanted.types):
            yield Mistake(field, f"{text!r} is {shown_type(kind)}, which is no {wanted.what}", wanted.remedy)


def table_mistakes(step: StepSpec, path: str, table: str) -> Iterator[Mistake]:
    """What such a step is told that takes its records from the table of this name."""
    if step.flat_map is not None:
        found = f"flatMap of the table {table!r}, of which each row is the last one of its key"
        remedy = "flatMap the stream that the table is made of, or read the topic as a stream"
        yield Mistake(under(path, "flatMap"), found, remedy)
    if step.peek is not None:
        found = f"peek at the table {table!r}, which tells its rows and not the records that they come from"
        yield Mistake(under(path, "peek"), found, "peek at the stream before the table; queries show the table itself")
    if step.headers is not None:
        found = f"headers for the table {table!r}, whose rows have none: each is made of several records"
        yield Mistake(under(path, "headers"), found, "set them on a stream, or select columns instead")
    if step.dedupe is not None:
        found = f"dedupe of the table {table!r}, which has one row of each key, and takes later ones for changes"
        yield Mistake(under(path, "dedupe"), found, "dedupe a stream, before it becomes a table")
    if step.process is not None:
        found = f"a processor of the table {table!r}, which has rows that change and no records"
        yield Mistake(under(path, "process"), found, "put a step toStream: {} before it, and process that")
    if step.split is not None:
        found = f"split of the table {table!r}, whose rows change their branch without leaving the old one"
        yield Mistake(under(path, "split"), found, "take each part from the table with a where step of its own")


def _flat_map(spec: FlatMapSpec, path: str, visible: Columns | None) -> Iterator[Mistake]:
    for problem in scalar_problems(spec.explode, visible):
        yield problem.in_field(under(path, "explode"))
    if visible is None:
        return
    if (taken := visible.get(spec.as_)) is not None and not spec.as_.startswith("_"):
        found = f"the column {taken.name!r} is there already"
        yield Mistake(under(path, "as"), found, "give the element another name; a select behind it leaves columns out")
    try:
        kind = visible.type_of(spec.explode)
    except SqlSyntaxError:
        return
    if kind is not None and not kind.is_type(exp.DType.ARRAY):
        remedy = "give an ARRAY; of a MAP, map_entries(…)"
        yield Mistake(under(path, "explode"), f"{spec.explode!r} is {shown_type(kind)}, which has no elements", remedy)


def _peek(spec: PeekSpec, path: str, visible: Columns | None) -> Iterator[Mistake]:
    for name, text in (("log", spec.log), ("value", spec.value)):
        for problem in scalar_problems(text, visible) if text is not None else ():
            yield problem.in_field(under(path, name))
    if spec.value is None or visible is None:
        return
    try:
        kind = visible.type_of(spec.value)
    except SqlSyntaxError:
        return
    if kind is not None and not kind.is_type(*exp.DataType.NUMERIC_TYPES):
        found = f"{spec.value!r} is {shown_type(kind)}, which can't be added up"
        yield Mistake(under(path, "value"), found, "give a number, such as length(…) or cast(… as double)")
