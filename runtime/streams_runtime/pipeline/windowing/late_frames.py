"""The records of a batch that came too late for a window, as they go to the topic that the user wants them in.

They are looked for in a stage of their own, and only in batches that have any: which windows a record before the batch
has closed shows when the batch meets the store.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streams_runtime.batch.columns import MISSED
from streams_runtime.pipeline.formats.header_columns import header, own_headers, with_more
from streams_runtime.pipeline.steps.written_rows import written
from streams_runtime.topology.nodes.aggregate_node import AggregateNode

_HEADER = "__streams.late."


def late_records(node: AggregateNode, missed: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows that came too late for the aggregate, as written_rows.written has them, values as JSON.

    `missed` has what the aggregate takes, the `columns`, and which windows each row missed (MISSED). Headers
    say for which step and windows (starts in ms), and where each record was; those that it had stay.
    """
    is_record = F.col("_topic").isNotNull()  # what a join of streams gives lies nowhere
    facts = {
        "step": F.lit(node.name),
        "windows": F.array_join(F.col(MISSED).cast("array<string>"), ","),
        "topic": F.col("_topic"),
        "partition": F.when(is_record, F.col("_partition").cast("string")),
        "offset": F.when(is_record, F.col("_offset").cast("string")),
    }
    why = [header(f"{_HEADER}{name}", text) for name, text in facts.items()]
    return written(missed.withColumn("_headers", with_more(own_headers(), why)).select(*columns), "json")
