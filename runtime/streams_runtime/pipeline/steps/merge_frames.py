"""Streams that become one: their rows beside each other, and in the order of their records where it is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.columns import ELEMENT, FORK, FROM_OFFSET, FROM_TOPIC, ORDER_TIME, RECORD
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.spark.frames import typed_columns
from streams_runtime.pipeline.windowing.record_ordinals import no_element
from streams_runtime.topology.nodes.step_nodes import MergeNode


def merged(node: MergeNode, frames: Sequence[DataFrame], is_whole: bool) -> DataFrame:
    """All rows of all inputs. `is_whole`: in one partition of Spark's, as those of each input are.

    Raises:
        InvalidApplicationException: they have different columns, or keys of different types.
    """
    first, *others = alike(frames)
    together = first
    for name, other in zip(node.merged[1:], others, strict=True):
        mine, theirs = (sorted(each.drop(RECORD).schema, key=lambda field: field.name) for each in (first, other))
        if [(f.name, f.dataType) for f in mine] != [(f.name, f.dataType) for f in theirs]:
            both = f"{typed_columns(other)} and {typed_columns(first)}"
            found = f"{name} has other columns than {node.merged[0]}: {both}"
            remedy = "give both the same columns with a select (and the same type of key with a keyBy)"
            raise InvalidApplicationException([Mistake(f"{node.path}.merge", found, remedy)])
        together = together.drop(RECORD).unionByName(other.drop(RECORD))
    return together.coalesce(1) if is_whole else together


def in_order(frame: DataFrame, is_whole: bool) -> DataFrame:
    """The rows of each topic's partition in the order in which their records came, whichever ways they have gone.

    What became of one record on several ways comes in the order of the ways.
    """
    order = [name for name in ("_offset", ELEMENT, FORK) if name in frame.columns]
    if FROM_TOPIC in frame.columns:
        order[0:1] = [FROM_TOPIC, FROM_OFFSET]
    if ORDER_TIME in frame.columns:
        order_by = [ORDER_TIME, *([] if FROM_TOPIC in frame.columns else ["_topic"]), *order]
        rows = frame if is_whole else frame.repartition("_partition")
        return rows.sortWithinPartitions("_partition", *order_by).drop(FORK)
    topic = FROM_TOPIC if FROM_TOPIC in frame.columns else "_topic"
    rows = frame if is_whole else frame.repartition(topic, "_partition")
    return rows.sortWithinPartitions(topic, "_partition", *order).drop(FORK)


def numbered(branches: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The inputs of a merge for `in_order`."""
    return {name: frame.withColumn(FORK, F.lit(number)) for number, (name, frame) in enumerate(branches.items())}


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
