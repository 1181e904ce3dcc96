"""What each kind of node does to a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from streams_runtime.api.steps.format_names import OF_COLUMNS
from streams_runtime.batch.columns import (
    FROM_TOPIC,
    HIDDEN,
    LOOKUP,
    NULL_VALUE,
    ORDER,
    ORDER_TIME,
    OUT_KEY,
    OUT_ORDER_TIME,
    OUT_RECORDS,
    OUT_TIME,
    OUT_TOPIC,
    OUT_VALUE,
    OUT_WINDOW,
    OUT_WINDOW_END,
    RECORD,
    VALUE,
    WINDOW_END,
    WINDOW_START,
)
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.spark_formats import format_of, write_json
from streams_runtime.pipeline.spark.refused_expressions import arguments_refused, columns_refused, refusing
from streams_runtime.pipeline.steps.stream_frames import alike, of_a_stream
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.topology.nodes.all_nodes import (
    Aggregate,
    AggregateNode,
    JoinNode,
    KeyByNode,
    MergeNode,
    RepartitionSinkNode,
    SinkNode,
    TableSourceNode,
    TransformNode,
)
from streams_runtime.topology.nodes.stream_nodes import StreamNode
from streams_runtime.topology.nodes.table_nodes import ToStreamNode, ToTableNode
from streams_runtime.topology.nodes.window_kinds import SlidingWindows

Passing = TransformNode | StreamNode | KeyByNode | MergeNode | ToStreamNode
"""Nodes that are one DataFrame of another, with nothing kept and nothing sent."""


def value_columns(frame: DataFrame) -> list[str]:
    """The columns of the record's value, without metadata."""
    return [name for name in frame.columns if name not in HIDDEN]


def applied(node: Passing, frames: Mapping[str, DataFrame], table: bool) -> DataFrame:
    """The node's output over its inputs' frames; `table` says whether its input is a table."""
    if isinstance(node, StreamNode):
        return of_a_stream(node, frames[node.input])
    match node:
        case TransformNode():
            return _transformed(node, frames[node.input], table)
        case KeyByNode():
            with refusing(f"{node.path}.keyBy"):
                # What was a window is none under another key.
                return frames[node.input].withColumn("_key", F.expr(node.key)).drop(WINDOW_START, WINDOW_END)
        case ToStreamNode():
            return frames[node.input].drop(RECORD)
        case MergeNode():
            return _merged(node, [frames[name] for name in node.inputs])


def _transformed(node: TransformNode, frame: DataFrame, table: bool) -> DataFrame:
    if node.where is not None:
        with refusing(f"{node.path}.where"):
            keep = F.expr(node.where)
            frame = _deleted_unless(keep, frame) if table else frame.where(keep)
    if node.select is None:
        return frame
    columns: list[Column] = [F.col(name) for name in frame.columns if name in HIDDEN and name != RECORD]
    for name, expression in node.select:
        with refusing(f"{node.path}.select.{name}"):
            value = F.expr(expression)
            columns.append((F.when(~F.col(NULL_VALUE), value) if table else value).alias(name))
    return frame.select(*columns)


def _deleted_unless(keep: Column, frame: DataFrame) -> DataFrame:
    """A table's rows, those that do not fit as deletions: a row that leaves a table is no silence for whoever follows.

    A deletion has no columns: a stream that the table becomes may ask for them.
    """
    marked = frame.withColumn(NULL_VALUE, F.col(NULL_VALUE) | ~F.coalesce(keep, F.lit(False)))
    there = ~F.col(NULL_VALUE)
    return marked.withColumns({name: F.when(there, F.col(f"`{name}`")) for name in value_columns(frame)})


def check_select(node: TransformNode, frame: DataFrame) -> None:
    """Analyse each column by itself over the step's input, so that a mistake is reported at its own field.

    Raises:
        InvalidApplicationException: the columns that Spark's analysis refuses, all of them.
    """
    mistakes = columns_refused(frame, node.select or (), f"{node.path}.select")
    if mistakes:
        raise InvalidApplicationException(mistakes)


def _merged(node: MergeNode, frames: list[DataFrame]) -> DataFrame:
    first, *others = alike(frames)
    merged = first
    for name, other in zip(node.inputs[1:], others, strict=True):
        mine, theirs = (sorted(each.drop(RECORD).schema, key=lambda field: field.name) for each in (first, other))
        if [(f.name, f.dataType) for f in mine] != [(f.name, f.dataType) for f in theirs]:
            raise InvalidApplicationException(
                [
                    Mistake(
                        f"{node.path}.merge",
                        f"{name} has other columns than {node.inputs[0]}: {_columns(other)} and {_columns(first)}",
                        "give both the same columns with a select (and the same type of key with a keyBy)",
                    )
                ]
            )
        merged = merged.drop(RECORD).unionByName(other.drop(RECORD))
    return merged


def partials(
    state: AggregateState, rows: DataFrame, path: str, within: Sequence[str] = (), more: Sequence[Column] = ()
) -> DataFrame:
    """The batch's contribution to each key: `_partition`, `_key`, the state's columns, `_time` (ms, latest).

    `rows` are usable ones; `within` names columns that divide a key's records, which are given too.
    """
    columns = []
    for column in state.columns:
        with refusing(column.path):
            columns.append(F.expr(column.expression).alias(column.name))
    with refusing(path):
        grouped = rows.groupBy("_partition", "_key", *within)
        latest = F.unix_millis(F.max("_timestamp")).alias(OUT_TIME)
        records = [F.count(F.lit(1)).alias(OUT_RECORDS)] if within else []
        return grouped.agg(*columns, latest, *records, *more)


def sums_of_doubles(aggregates: Iterable[Aggregate], rows: DataFrame) -> frozenset[str]:
    """The columns that are sums of type DOUBLE; not those that `check_aggregates` refuses."""
    found = set()
    for each in aggregates:
        if each.function == "sum":
            with suppress(InvalidApplicationException), refusing(each.path):
                (total,) = rows.agg(F.expr(f"sum({each.argument})")).schema
                if isinstance(total.dataType, DoubleType):
                    found.add(each.column)
    return frozenset(found)


def check_aggregates(state: AggregateState, rows: DataFrame) -> None:
    """Analyse each aggregate by itself, so that a mistake is reported at its own field.

    Raises:
        InvalidApplicationException: the aggregates that Spark's analysis refuses, all of them.
    """
    mistakes = {each.path: each for each in arguments_refused(state.declared, rows)}
    rows = rows.withColumn(ORDER, F.lit(0))
    for column in state.columns:
        if column.path in mistakes:
            continue
        try:
            with refusing(column.path):
                rows.agg(F.expr(column.expression))
        except InvalidApplicationException as refused:
            mistakes |= {mistake.path: mistake for mistake in refused.mistakes}
    if mistakes:
        raise InvalidApplicationException(list(mistakes.values()))


@cache
def usable(node: AggregateNode | TableSourceNode | ToTableNode | RepartitionSinkNode | JoinNode) -> Column:
    """Whether the node takes a record, as in Kafka Streams.

    It needs a key, except for a left join; joins and aggregates by key or by sliding windows need a value too. A join
    with a global table asks for what it looks up instead of the key.
    """
    looks_up = isinstance(node, JoinNode) and node.on is not None
    keyed, valued = F.col(LOOKUP if looks_up else "_key").isNotNull(), ~F.col(NULL_VALUE)
    match node:
        case AggregateNode(windows=None | SlidingWindows()) | JoinNode(left=False):
            return keyed & valued
        case JoinNode():
            return valued
        case RepartitionSinkNode(keeps_null_keys=True):
            return F.lit(True)
        case _:
            return keyed


def taken(node: AggregateNode | RepartitionSinkNode | JoinNode, rows: DataFrame, dropped: Observation) -> DataFrame:
    """The rows that the node takes; the first query over them leaves in `dropped` how many it does not."""
    return rows.observe(dropped, _left_out(node)).where(usable(node))


@cache
def _left_out(node: AggregateNode | RepartitionSinkNode | JoinNode) -> Column:
    return F.count_if(~usable(node)).alias("dropped")


def value_of(columns: Iterable[str], value_format: str) -> Column:
    """The value of a frame with these columns as it goes to a topic: JSON, a struct, or the one column."""
    if value_format not in OF_COLUMNS:
        return F.col(VALUE)
    values = [F.col(f"`{name}`") for name in columns if name not in HIDDEN]
    return write_json(values) if value_format == "json" else F.struct(*values)


def written(frame: DataFrame, value_format: str) -> DataFrame:
    """Rows as they go to a topic: `_key`, `_value` (see `value_of`), `_time` (ms), `_headers`.

    Rows that are windows have its start and end in ms too.
    """
    return frame.select(*_written(tuple(frame.columns), value_format))


def written_in_order(frame: DataFrame, value_format: str) -> DataFrame:
    """The same, with what their order goes by (stream_time): the partition and the topic that they came of, and the
    time that they take their turn by (OUT_TURN, ms).
    """
    topic = FROM_TOPIC if FROM_TOPIC in frame.columns else "_topic"
    turn = F.unix_millis(ORDER_TIME if ORDER_TIME in frame.columns else "_timestamp").alias(OUT_ORDER_TIME)
    columns = _written(tuple(frame.columns), value_format)
    return frame.select(*columns, "_partition", F.col(topic).alias(OUT_TOPIC), turn)


@cache
def _written(columns: tuple[str, ...], value_format: str) -> list[Column]:
    window = []
    if WINDOW_START in columns:
        bounds = ((WINDOW_START, OUT_WINDOW), (WINDOW_END, OUT_WINDOW_END))
        window = [F.unix_millis(name).alias(out) for name, out in bounds]
    return [
        *window,
        F.col("_key").alias(OUT_KEY),
        F.when(~F.col(NULL_VALUE), value_of(columns, value_format)).alias(OUT_VALUE),
        F.unix_millis("_timestamp").alias(OUT_TIME),
        F.col("_headers"),
    ]


def sink_format(node: SinkNode, frame: DataFrame) -> str:
    """Name of the format that the sink writes: the declared one, else json.

    Raises:
        InvalidApplicationException: the declared format can't carry the columns.
    """
    declared = "json" if node.value is None else node.value.name
    names = value_columns(frame)
    if declared in OF_COLUMNS:
        return declared
    if names == [VALUE]:
        with refusing(f"{node.path}.value.format"):
            carried = format_of(frame.schema[VALUE].dataType).name
        if carried != declared:
            found = f"the format {declared} is declared, and the column {VALUE} of {node.input} is carried by {carried}"
            mistake = Mistake(f"{node.path}.value.format", found, f"declare {carried}, or cast the column in a select")
            raise InvalidApplicationException([mistake])
    else:
        found = f"the format {declared} carries one column named {VALUE}, and {node.input} has {_columns(frame)}"
        raise InvalidApplicationException(
            [Mistake(f"{node.path}.value.format", found, f"use json, or a select with the one column {VALUE}")]
        )
    return declared


def _columns(frame: DataFrame) -> str:
    kinds = [("key", frame.schema["_key"]), *((name, frame.schema[name]) for name in value_columns(frame))]
    return ", ".join(f"{name} {field.dataType.simpleString().upper()}" for name, field in kinds)
