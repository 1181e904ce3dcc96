"""Tables as DataFrames."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table's rows, in order.

    Spark takes a chunk without rows for the end of a table (4.0), and loses what comes behind it without a word.
    """
    batches = [each for each in table.to_batches() if each.num_rows]
    # Nor can it take a column of lists that has no chunk at all, as one without rows may be.
    return spark.createDataFrame(pa.Table.from_batches(batches) if batches else table.schema.empty_table())
