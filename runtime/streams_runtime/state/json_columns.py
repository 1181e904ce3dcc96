"""Columns as JSON has them, and back: times as text in ISO 8601, bytes in base64, structs as objects."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from streams_runtime.state.aggregate_kind import FLOATS, INTEGERS

_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%.6fZ"


def json_rows(table: pa.Table) -> list[bytes]:
    """Each row as a JSON object with the table's columns; timestamps in ISO 8601, UTC, microseconds."""
    return rows_as_json(pl.from_arrow(table))  # type: ignore[arg-type]


def rows_as_json(frame: pl.DataFrame) -> list[bytes]:
    """The same of a frame."""
    columns = [to_json(pl.col(name), kind).alias(name) for name, kind in frame.schema.items()]
    encoded = frame.select(pl.struct(columns).struct.json_encode().cast(pl.Binary)).to_series()
    rows: list[bytes] = encoded.to_list()
    return rows


def to_json(column: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """A column with the types that JSON has; one that has them already stays as it is."""
    if isinstance(kind, pl.List):
        return column.list.eval(to_json(pl.element(), kind.inner))  # type: ignore[arg-type]
    if isinstance(kind, pl.Struct):
        fields = [to_json(column.struct.field(each.name), each.dtype).alias(each.name) for each in kind.fields]  # type: ignore[arg-type]
        return pl.when(column.is_not_null()).then(pl.struct(fields))
    if isinstance(kind, pl.Binary):
        return column.bin.encode("base64")
    return column.dt.to_string(_TIME_FORMAT) if isinstance(kind, pl.Datetime) else column


def json_type(kind: pa.DataType) -> Any:
    """The type under which polars reads the JSON of such a column."""
    if pa.types.is_list(kind):
        return pl.List(json_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pl.Struct({field.name: json_type(field.type) for field in kind})
    if kind in INTEGERS:
        return pl.Int64
    if kind in FLOATS:
        return pl.Float64
    return pl.Boolean if pa.types.is_boolean(kind) else pl.String


def from_json(column: pl.Expr, kind: pa.DataType) -> pl.Expr:
    """What was read under `json_type` as the column's own type, but for the width of numbers."""
    if pa.types.is_list(kind):
        return column.list.eval(from_json(pl.element(), kind.value_type))
    if pa.types.is_struct(kind):
        fields = [from_json(column.struct.field(field.name), field.type).alias(field.name) for field in kind]
        return pl.when(column.is_not_null()).then(pl.struct(fields))
    if pa.types.is_timestamp(kind):
        return column.str.to_datetime(_TIME_FORMAT, time_unit="us", time_zone="UTC")
    if pa.types.is_binary(kind):
        return column.str.decode("base64")
    return column.str.to_date() if pa.types.is_date32(kind) else column
