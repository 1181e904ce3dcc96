"""Columns of lists as rows of their elements, and back: how kinds that keep lists put them together."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

ROW = "row"


def elements(columns: Mapping[str, pa.ChunkedArray]) -> pl.DataFrame:
    """One row for each element of lists that are equally long, with the number of the row that it stood in."""
    frame = pl.DataFrame({name: pl.from_arrow(column) for name, column in columns.items()})
    return frame.with_row_index(ROW).explode(*columns).drop_nulls(next(iter(columns)))


def lists(frame: pl.DataFrame, rows: int, types: Mapping[str, pa.DataType]) -> list[pa.ChunkedArray]:
    """The elements of each row as lists again, in the order in which they are; empty where there are none."""
    found = frame.group_by(ROW, maintain_order=True).agg(*types)
    whole = pl.DataFrame({ROW: pl.int_range(rows, dtype=pl.UInt32, eager=True)})
    whole = whole.join(found, on=ROW, how="left", maintain_order="left").with_columns(pl.col(*types).fill_null([]))
    return [pa.chunked_array([whole[name].to_arrow()]).cast(kind) for name, kind in types.items()]
