"""Tables as DataFrames, and the columns of a frame."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from streams_runtime.batch.columns import HIDDEN


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table's rows, in order.

    Spark takes a chunk without rows for the end of a table (4.0), and loses what comes behind it without a word.
    """
    batches = [_copied(each) for each in table.to_batches() if each.num_rows]
    # Nor can it take a column of lists that has no chunk at all, as one without rows may be.
    return spark.createDataFrame(pa.Table.from_batches(batches) if batches else table.schema.empty_table())


def with_nulls_allowed(frame: DataFrame) -> DataFrame:
    """The frame as toArrow can give it.

    A field that can't be null of a struct that is null is null all the same, which Arrow refuses: such columns get a
    type in which it can.
    """
    columns = [
        F.col(f"`{field.name}`").cast(_nullable(field.dataType)).alias(field.name)
        if _may_hold_a_null(field.dataType, field.nullable)
        else F.col(f"`{field.name}`")
        for field in frame.schema
    ]
    changed = any(_may_hold_a_null(field.dataType, field.nullable) for field in frame.schema)
    return frame.select(*columns) if changed else frame


def _may_hold_a_null(kind: DataType, null: bool) -> bool:
    """Whether a field that can't be null is in a struct that can; `null`: this can."""
    if isinstance(kind, ArrayType):
        return _may_hold_a_null(kind.elementType, kind.containsNull)
    if isinstance(kind, MapType):
        return _may_hold_a_null(kind.valueType, kind.valueContainsNull)
    return isinstance(kind, StructType) and any(
        (null and not field.nullable) or _may_hold_a_null(field.dataType, null or field.nullable) for field in kind
    )


def _nullable(kind: DataType) -> DataType:
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _nullable(kind.valueType))
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _nullable(field.dataType)) for field in kind])
    return kind


def value_columns(frame: DataFrame) -> list[str]:
    """The columns of the record's value, without metadata."""
    return [name for name in frame.columns if name not in HIDDEN]


def typed_columns(frame: DataFrame) -> str:
    """The key and the columns of a frame with their types, for a message."""
    kinds = [("key", frame.schema["_key"]), *((name, frame.schema[name]) for name in value_columns(frame))]
    return ", ".join(f"{name} {field.dataType.simpleString().upper()}" for name, field in kinds)


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows; lists and structs in arrays of their own.

    Spark builds nested columns anew from their offsets and nulls. Arrow refuses that for lists with nulls that are a
    slice of a longer array, at any depth.
    """
    columns = [pa.concat_arrays([each]) if pa.types.is_nested(each.type) else each for each in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
