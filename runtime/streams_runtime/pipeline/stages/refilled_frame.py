"""A DataFrame that is given other rows, so that a query over it is planned only once.

Spark analyses, optimises and plans each query anew, which takes a batch of few records many times as long as their
work does. A query that is asked a second time keeps its plan, and Spark runs a plan as often as it is asked to: what
it begins with is an array in the JVM, whose element this module exchanges.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

_THRESHOLD = "spark.sql.execution.arrow.localRelationThreshold"
_THRESHOLD_LOCK = Lock()
_LARGE = 1 << 16  # bytes; to take them out again is a call into the JVM


class RefilledFrame:
    """Rows of one schema, in one partition of Spark's."""

    def __init__(self, spark: SparkSession, schema: pa.Schema) -> None:
        """With a row of no meaning. The schema is one that `is_refillable`."""
        row = pa.Table.from_arrays([pa.array([_any_value(each.type)], each.type) for each in schema], schema=schema)
        with _THRESHOLD_LOCK:
            before = str(spark.conf.get(_THRESHOLD))
            spark.conf.set(_THRESHOLD, "0")  # rows are no part of the plan, however few they are
            try:
                frame = spark.createDataFrame(row)
            finally:
                spark.conf.set(_THRESHOLD, before)
        self._messages = _messages(frame)
        self._is_large = False
        # Of one partition, as Spark knows of it, nothing has to be shuffled.
        self.frame = frame.coalesce(1)

    def fill(self, table: pa.Table) -> None:
        """Have these rows from now on, of the same schema."""
        whole = table.combine_chunks().to_batches()
        batch = whole[0] if whole else pa.RecordBatch.from_pylist([], table.schema)
        message = batch.serialize().to_pybytes()
        self._messages[0] = message
        self._is_large = len(message) > _LARGE

    def let_go(self) -> None:
        """Not keep rows of any size until the next ones come: a query may not be asked before."""
        if self._is_large:
            self._messages[0] = None


def is_refillable(schema: pa.Schema) -> bool:
    """Whether Arrow's columns are Spark's as they are."""
    return [each.type for each in schema] == [each.type for each in to_arrow_schema(from_arrow_schema(schema))]


def _any_value(kind: pa.DataType) -> object:
    """A value of the type, which may be one that has no nulls."""
    if pa.types.is_struct(kind):
        return {each.name: _any_value(each.type) for each in kind}
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return []
    if pa.types.is_boolean(kind):
        return False
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return b""
    return None if pa.types.is_null(kind) else 0


def _messages(frame: DataFrame) -> Any:
    """The array in which a frame of Arrow's batches has them, each as a message of Arrow's format."""
    rows = frame._jdf.queryExecution().logical().rdd()
    while not rows.dependencies().isEmpty():
        rows = rows.dependencies().head().rdd()
    return rows.partitions()[0].values().unsafeArray()
