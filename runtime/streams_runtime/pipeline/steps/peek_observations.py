"""What a peek sees of a batch: the numbers of all records, and the first few texts, in the query that is run anyway."""

from __future__ import annotations

import orjson
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.peeks import Line, Seen
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.topology.nodes.stream_nodes import PeekNode

LONGEST_TEXT = 1000
_ROW = "_row"  # a row's number within its partition in Spark
_OF_A_PARTITION = (1 << 33) - 1  # the bits that monotonically_increasing_id counts rows with


def watched(node: PeekNode, frame: DataFrame, left: Observed) -> DataFrame:
    """The same rows; a query over them leaves what `seen` reads.

    Of texts no more than `at_most` of each of Spark's partitions are kept, the first ones.
    """
    value = F.lit(1) if node.value is None else F.expr(node.value)
    metrics = [F.count(F.lit(1)).alias("records"), F.sum(value.cast("double")).alias("total")]
    if node.log is None:
        return left.on(frame, *metrics)
    text = _text(node.log)
    where = ("_topic", "_partition", "_offset")
    early = (F.col(_ROW) < node.at_most) & text.isNotNull()
    lines = F.collect_list(F.when(early, F.struct(*where, text.alias("text"))))
    metrics += [F.to_json(lines).alias("lines"), F.count(text).alias("texts")]
    row = F.monotonically_increasing_id().bitwiseAND(_OF_A_PARTITION)
    return left.on(frame.withColumn(_ROW, row), *metrics).drop(_ROW)


def seen(node: PeekNode, left: Observed) -> Seen:
    """What the last query over the watched rows has left."""
    records, total = left["records"], left["total"] or 0.0
    if node.log is None:
        return Seen(node, records, total, (), 0)
    read = (
        Line(each.get("_topic"), each["_partition"], each.get("_offset"), each["text"])
        for each in orjson.loads(left["lines"] or "[]")
    )
    lines = sorted(read, key=lambda line: (line.topic or "", line.partition, line.offset or 0))
    return Seen(node, records, total, tuple(lines[: node.at_most]), left["texts"])


def _text(expression: str) -> Column:
    return F.substring(F.expr(expression).cast("string"), 1, LONGEST_TEXT)
