"""What a peek sees of a batch: the numbers of all records, and the first few texts, in the query that is run anyway."""

from __future__ import annotations

import orjson
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from streams_runtime.batch.peeks import Line, Seen
from streams_runtime.topology.nodes.stream_nodes import PeekNode

LONGEST_TEXT = 1000
_ROW = "_row"  # a row's number within its partition in Spark
_OF_A_PARTITION = (1 << 33) - 1  # the bits that monotonically_increasing_id counts rows with


def watched(node: PeekNode, frame: DataFrame, observation: Observation) -> DataFrame:
    """The same rows; the first query over them leaves in `observation` what `seen` reads.

    Of texts no more than `at_most` of each of Spark's partitions are kept, the first ones.
    """
    value = F.lit(1) if node.value is None else F.expr(node.value)
    metrics = [F.count(F.lit(1)).alias("records"), F.sum(value.cast("double")).alias("total")]
    if node.log is None:
        return frame.observe(observation, *metrics)
    text = _text(node.log)
    where = ("_topic", "_partition", "_offset")
    early = (F.col(_ROW) < node.at_most) & text.isNotNull()
    lines = F.collect_list(F.when(early, F.struct(*where, text.alias("text"))))
    metrics += [F.to_json(lines).alias("lines"), F.count(text).alias("texts")]
    row = F.monotonically_increasing_id().bitwiseAND(_OF_A_PARTITION)
    return frame.withColumn(_ROW, row).observe(observation, *metrics).drop(_ROW)


def seen(node: PeekNode, observation: Observation) -> Seen:
    """Read what was seen; blocks until a query over the watched rows has ended."""
    found = observation.get
    read = (
        Line(each.get("_topic"), each["_partition"], each.get("_offset"), each["text"])
        for each in orjson.loads(found.get("lines") or "[]")
    )
    lines = sorted(read, key=lambda line: (line.topic or "", line.partition, line.offset or 0))
    return Seen(node, found["records"], found["total"] or 0.0, tuple(lines[: node.at_most]), found.get("texts") or 0)


def _text(expression: str) -> Column:
    return F.substring(F.expr(expression).cast("string"), 1, LONGEST_TEXT)
