"""Records' headers as the column `_headers` holds them: an array of key and value, or null for none."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

_TYPE = "array<struct<key:string,value:binary>>"


def header(name: str, text: Column) -> Column:
    """A header as an element of `_headers`. Bytes are the same after they were called a string."""
    return F.struct(F.lit(name).alias("key"), text.cast("string").cast("binary").alias("value"))


def own_headers() -> Column:
    """The headers that the rows have, as an array in any case."""
    return F.coalesce(F.col("_headers"), F.array().cast(_TYPE))


def with_more(headers: Column, more: Iterable[Column]) -> Column:
    """`headers` with others behind them; one whose value is null is left out."""
    return F.concat(headers, F.filter(F.array(*more), lambda each: each["value"].isNotNull()))
