"""Spark's part of tables that streams become: rows as a store keeps them, each with the place of its record."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streams_runtime.batch.columns import (
    FROM_OFFSET,
    FROM_TOPIC,
    NULL_VALUE,
    ORDINAL,
    OUT_KEY,
    OUT_TIME,
    OUT_VALUE,
    further,
)
from streams_runtime.batch.encode import encoded
from streams_runtime.pipeline.formats.decode import Decoder
from streams_runtime.pipeline.formats.spark_formats import ddl_of, format_of
from streams_runtime.pipeline.spark.frames import value_columns
from streams_runtime.pipeline.steps.written_rows import value_of
from streams_runtime.topology.nodes.source_and_sink_nodes import Format


def ordinal_of(rows: DataFrame) -> list[Column]:
    """The columns of the rows that say where their records are: PLACE, and TURN and ELEMENT where they have them.

    Of what lies nowhere, that of the record that it came of.
    """
    came_of = FROM_TOPIC in rows.columns
    where = zip((FROM_TOPIC, FROM_OFFSET, "_timestamp") if came_of else ORDINAL, ORDINAL, strict=True)
    return [*(F.col(name).alias(place) for name, place in where), *(F.col(name) for name in further(rows.columns))]


def kept_rows(rows: DataFrame, headers: bool) -> DataFrame:
    """Rows as a store keeps them, but for their keys: partition, key, value as bytes, time (ms), the place, and headers
    if wanted.

    Keys and values are None where there are none.
    """
    beside = [*ordinal_of(rows), *([F.col("_headers")] if headers else [])]
    return rows.select(
        "_partition",
        F.col("_key").alias(OUT_KEY),
        F.unix_millis("_timestamp").alias(OUT_TIME),
        F.when(~F.col(NULL_VALUE), value_of(rows.columns, "json")).cast("binary").alias(OUT_VALUE),
        *beside,
    )


def with_keys_as_bytes(table: pa.Table) -> pa.Table:
    """Rows as a store keeps them, of `kept_rows`."""
    keys = pa.chunked_array([pa.array(encoded(table[OUT_KEY]), pa.binary())])
    return table.set_column(table.column_names.index(OUT_KEY), OUT_KEY, keys)


def decoder_of_rows(rows: DataFrame) -> Decoder:
    """How such keys and values are read.

    Raises:
        NotSupportedException: keys have no format for their type.
    """
    columns = StructType([rows.schema[name] for name in value_columns(rows)])
    return Decoder(format_of(rows.schema["_key"].dataType), Format("json", ddl_of(columns)), strict=False)
