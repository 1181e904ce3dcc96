"""What the nodes that only streams have do to a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, NumericType

from streams_runtime.batch.columns import ELEMENT, FORK, FROM_OFFSET, FROM_TOPIC, NULL_VALUE, ORDER_TIME
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.formats.header_columns import header, own_headers, with_more
from streams_runtime.pipeline.spark.refused_expressions import all_refused
from streams_runtime.topology.nodes.stream_nodes import (
    BranchNode,
    FlatMapNode,
    HeadersNode,
    PeekNode,
    SplitNode,
    StreamNode,
)

_POSITION = "_position"
_ARRAY = ("which has no elements", "give an ARRAY; of a MAP, map_entries(…)")
_NUMBER = ("which can't be added up", "give a number, such as length(…) or cast(… as double)")
_BRANCH = "_branch"  # which branch of a split a row belongs to, counted from 0


def of_a_stream(node: StreamNode, frame: DataFrame) -> DataFrame:
    """The node's output over its input's frame, for nodes that `check_stream_node` has accepted."""
    match node:
        case FlatMapNode():
            return flat_mapped(node, frame)
        case SplitNode():
            number: Column = F.lit(len(node.conditions))
            for index, condition in reversed(list(enumerate(node.conditions))):
                number = F.when(F.expr(condition), index).otherwise(number)
            return frame.withColumn(_BRANCH, number)
        case BranchNode():
            return frame.where(F.col(_BRANCH) == node.number).drop(_BRANCH)
        case PeekNode():
            return frame
        case HeadersNode():
            return with_headers(node, frame)


def check_stream_node(node: StreamNode, frame: DataFrame) -> None:
    """Analyse each of the node's expressions by itself over its input's frame.

    Raises:
        InvalidApplicationException: those that Spark's analysis refuses, or that have another type, all of them.
    """
    mistakes = all_refused(_checks(node, frame))
    if mistakes:
        raise InvalidApplicationException(mistakes)


def _checks(node: StreamNode, frame: DataFrame) -> Iterator[tuple[str, Callable[[], object]]]:
    match node:
        case FlatMapNode():
            path = f"{node.path}.flatMap.explode"
            yield path, partial(_expect, ArrayType, frame, node.explode, path, _ARRAY)
        case SplitNode():
            for index, condition in enumerate(node.conditions):
                yield f"{node.path}.split[{index}].where", partial(frame.where, F.expr(condition))
        case PeekNode():
            if node.log is not None:
                yield f"{node.path}.peek.log", partial(frame.select, F.expr(node.log).cast("string"))
            if node.value is not None:
                path = f"{node.path}.peek.value"
                yield path, partial(_expect, NumericType, frame, node.value, path, _NUMBER)
        case HeadersNode():
            for name, text in node.headers:
                yield f"{node.path}.headers.{name}", partial(frame.select, header(name, F.expr(text)))
        case BranchNode():
            pass  # the split's conditions are its own


def _expect(kind: type[DataType], frame: DataFrame, text: str, path: str, wanted: tuple[str, str]) -> None:
    found = frame.select(F.expr(text).alias("x")).schema["x"].dataType
    if not isinstance(found, kind):
        what, remedy = wanted
        raise InvalidApplicationException([Mistake(path, f"{text} is {found.simpleString().upper()}, {what}", remedy)])


def flat_mapped(node: FlatMapNode, frame: DataFrame) -> DataFrame:
    """A row of each element, in the order of the rows and of their arrays; metadata is that of the row."""
    # What has no value has no elements, whatever the expression makes of nulls.
    elements = F.posexplode(F.when(~F.col(NULL_VALUE), F.expr(node.explode)))
    exploded = frame.select("*", elements.alias(_POSITION, node.column))
    outer = F.col(ELEMENT) if ELEMENT in frame.columns else no_element()
    return exploded.withColumn(ELEMENT, F.concat(outer, F.array(_POSITION))).drop(_POSITION)


def with_headers(node: HeadersNode, frame: DataFrame) -> DataFrame:
    """The rows with the node's headers behind those of other names; one whose expression is null is left out."""
    names = [name for name, _ in node.headers]
    kept = F.filter(own_headers(), lambda each: ~each["key"].isin(names))
    new = [header(name, F.expr(text)) for name, text in node.headers]
    return frame.withColumn("_headers", with_more(kept, new))


def in_order(frame: DataFrame) -> DataFrame:
    """The rows of each topic's partition in the order in which their records came, whichever ways they have gone.

    What became of one record on several ways comes in the order of the ways.
    """
    order = [name for name in ("_offset", ELEMENT, FORK) if name in frame.columns]
    if FROM_TOPIC in frame.columns:
        order[0:1] = [FROM_TOPIC, FROM_OFFSET]
    if ORDER_TIME in frame.columns:
        turns = [ORDER_TIME, *([] if FROM_TOPIC in frame.columns else ["_topic"]), *order]
        return frame.repartition("_partition").sortWithinPartitions("_partition", *turns).drop(FORK)
    topic = FROM_TOPIC if FROM_TOPIC in frame.columns else "_topic"
    rows = frame.repartition(topic, "_partition")
    return rows.sortWithinPartitions(topic, "_partition", *order).drop(FORK)


def numbered(ways: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The inputs of a merge for `in_order`."""
    return {name: frame.withColumn(FORK, F.lit(number)) for number, (name, frame) in enumerate(ways.items())}


def alike(frames: Sequence[DataFrame]) -> list[DataFrame]:
    """The frames with what any of them has beside metadata and columns."""
    nothing = {
        ELEMENT: no_element(),
        ORDER_TIME: F.col("_timestamp"),
        FROM_TOPIC: F.col("_topic"),
        FROM_OFFSET: F.col("_offset"),
    }
    wanted = {name: column for name, column in nothing.items() if any(name in frame.columns for frame in frames)}
    lacking = [{name: each for name, each in wanted.items() if name not in frame.columns} for frame in frames]
    return [frame.withColumns(each) if each else frame for frame, each in zip(frames, lacking, strict=True)]


def no_element() -> Column:
    """The ELEMENT of what is all that its record has become."""
    return F.array().cast("array<int>")
