"""Columns as JSON has them, and back: times as text in ISO 8601, bytes in base64, structs as objects.

JSON has no NaN and no infinities (RFC 8259, section 6). They are the texts "NaN", "Infinity" and "-Infinity", as Spark,
Jackson and Protobuf write them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import polars as pl
import pyarrow as pa

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
FLOATS = (pa.float32(), pa.float64())
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%.6fZ"
_TEXTS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_ANY_TEXT = r'"(?:NaN|-?Infinity)"'


def json_rows(table: pa.Table) -> list[bytes]:
    """Each row as a JSON object with the table's columns; timestamps in ISO 8601, UTC, microseconds."""
    return rows_as_json(pl.from_arrow(table))  # type: ignore[arg-type]


def rows_as_json(frame: pl.DataFrame) -> list[bytes]:
    """The same of a frame."""
    columns = [to_json(pl.col(name), kind).alias(name) for name, kind in frame.schema.items()]
    made = frame.select(columns)
    rows: list[bytes] = made.select(pl.struct(pl.all()).struct.json_encode().cast(pl.Binary)).to_series().to_list()
    odd = [_has_no_number(pl.col(name), kind) for name, kind in made.schema.items() if _has_floats(kind)]
    if odd:
        for row in made.select(pl.any_horizontal(odd).fill_null(False).arg_true()).to_series().to_list():
            rows[row] = orjson.dumps(with_texts(made.row(row, named=True)))
    return rows


def rows_of_json(values: pl.Series, kind: pl.Struct) -> pl.Series:
    """Objects that were written so, under the types of `json_type`; null for null. Raises polars.PolarsError."""
    try:
        return values.str.json_decode(kind)
    except pl.exceptions.PolarsError:
        odd = values.str.contains(_ANY_TEXT).fill_null(False)
        if not odd.any():
            raise
        rows = [_with_numbers(orjson.loads(each), kind) for each in values.filter(odd)]
        both = pl.concat([values.filter(~odd).str.json_decode(kind), pl.Series(values.name, rows, kind)])
        return both.gather(pl.concat([(~odd).arg_true(), odd.arg_true()]).arg_sort())


def with_texts(value: Any) -> Any:
    """A value with the texts in place of NaN and infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {name: with_texts(each) for name, each in value.items()}
    return [with_texts(each) for each in value] if isinstance(value, list | tuple) else value


def number_of(value: Any) -> Any:
    """A number that stood in JSON, where it may be one of the texts."""
    return _TEXTS.get(value, value) if isinstance(value, str) else value


def _with_numbers(value: Any, kind: Any) -> Any:
    """What was read of JSON with numbers in place of the texts, where a number is due."""
    if isinstance(kind, pl.Struct) and isinstance(value, Mapping):
        return {each.name: _with_numbers(value.get(each.name), each.dtype) for each in kind.fields}
    if isinstance(kind, pl.List) and isinstance(value, Sequence):
        return [_with_numbers(each, kind.inner) for each in value]
    return number_of(value) if kind == pl.Float64 else value


def _has_floats(kind: Any) -> bool:
    if isinstance(kind, pl.Struct):
        return any(_has_floats(each.dtype) for each in kind.fields)
    return _has_floats(kind.inner) if isinstance(kind, pl.List) else kind.is_float()


def _has_no_number(column: pl.Expr, kind: Any) -> pl.Expr:
    """Whether NaN or an infinity is in it."""
    if isinstance(kind, pl.Struct):
        fields = [
            _has_no_number(column.struct.field(each.name), each.dtype)
            for each in kind.fields
            if _has_floats(each.dtype)
        ]
        return pl.any_horizontal(fields)
    if isinstance(kind, pl.List):
        return column.list.eval(_has_no_number(pl.element(), kind.inner)).list.any()
    return ~column.is_finite()


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


def fields_in_json(kind: pa.DataType) -> list[str]:
    """How the fields of a struct begin in JSON; none for other types."""
    return [f"{orjson.dumps(field.name).decode()}:" for field in kind] if pa.types.is_struct(kind) else []
