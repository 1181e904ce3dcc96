"""Running aggregates as columns: what Spark pre-aggregates, how it merges into a store, how it lies there.

Each aggregate keeps one or two *state columns*; Spark computes them for a batch, `merge` adds the batch to what the
store has, column by column, and `finish` turns state into what a user sees. In a store and its changelog a key's
state is one JSON object; only avg's differs from what the user sees ({"sum": …, "count": …}).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.errors import (
    InvalidApplicationException,
    Mistake,
    NotSupportedException,
    ProcessorStateException,
    StreamsException,
)
from streams_runtime.topology.plan import Aggregate

_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%.6fZ"
_AVG_SUM, _AVG_COUNT = "sum", "count"
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FLOATS = (pa.float32(), pa.float64())


@dataclass(frozen=True, slots=True)
class StateColumn:
    """One column of state: `name`, the Spark SQL that computes it for a batch, and how two values become one."""

    name: str
    expression: str
    merge: Callable[[pa.ChunkedArray, pa.ChunkedArray], pa.ChunkedArray]
    path: str


def _both(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.coalesce(pc.add_checked(old, new), old, new)


def _least(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.min_element_wise(_ordered(old), _ordered(new), skip_nulls=True).cast(old.type)


def _greatest(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.max_element_wise(_ordered(old), _ordered(new), skip_nulls=True).cast(old.type)


def _ordered(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow does not compare times with a zone, nor booleans; the numbers beneath them have the same order."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column


def _columns_of(aggregate: Aggregate) -> list[StateColumn]:
    name, argument, path = aggregate.column, aggregate.argument, aggregate.path
    match aggregate.function:
        case "count":
            return [StateColumn(name, f"count({argument or '1'})", _both, path)]
        case "sum":
            return [StateColumn(name, f"sum({argument})", _both, path)]
        case "min":
            return [StateColumn(name, f"min({argument})", _least, path)]
        case "max":
            return [StateColumn(name, f"max({argument})", _greatest, path)]
        case "avg":
            return [
                StateColumn(f"{name}.{_AVG_SUM}", f"sum(cast({argument} as double))", _both, path),
                StateColumn(f"{name}.{_AVG_COUNT}", f"count({argument})", _both, path),
            ]
        case function:
            raise NotSupportedException(
                f"{path}: the aggregate {function} is not there yet; use count, sum, min, max or avg"
            )


class AggregateState:
    """The state of one aggregate step.

    `schema` (Arrow) of the state columns is known once Spark has analysed the expressions: `bind` it before merging.
    """

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        self._aggregates = tuple(aggregates)
        self.columns = tuple(column for aggregate in aggregates for column in _columns_of(aggregate))
        self._schema: pa.Schema | None = None

    def bind(self, schema: pa.Schema) -> None:
        """Fix the types of the state columns, as Spark gives them.

        Raises:
            InvalidApplicationException: columns whose type can't be kept as JSON, each with its field.
        """
        mistakes = [
            Mistake(
                column.path,
                f"aggregates of type {schema.field(column.name).type} are not there yet",
                "cast the argument to BIGINT, DOUBLE or STRING",
            )
            for column in self.columns
            if not _can_be_kept(schema.field(column.name).type)
        ]
        if mistakes:
            raise InvalidApplicationException(mistakes)
        self._schema = pa.schema([(column.name, schema.field(column.name).type) for column in self.columns])

    def merge(self, stored: pa.Table, batch: pa.Table) -> pa.Table:
        """State after the batch; the tables have the same keys in the same rows, nulls where there was no state.

        Raises:
            StreamsException: a sum or count left the range of BIGINT. Cast its argument to DOUBLE.
        """
        merged = []
        for column in self.columns:
            try:
                merged.append(column.merge(stored[column.name], batch[column.name]))
            except pa.ArrowInvalid as error:
                raise StreamsException(
                    f"{column.path}: the running total left the range of BIGINT ({error}); cast the argument to DOUBLE"
                ) from error
        return pa.table(merged, names=[column.name for column in self.columns])

    def encode(self, state: pa.Table) -> list[bytes]:
        """State as stored: one JSON object a row.

        Raises:
            StreamsException: a column became NaN or infinite, which JSON can't hold.
        """
        for column in self.columns:
            values = state[column.name]
            if pa.types.is_floating(values.type) and pc.all(pc.is_finite(values)).as_py() is False:
                raise StreamsException(
                    f"{column.path}: the aggregate became NaN or infinite, which JSON can't hold; leave such values"
                    " out with a where"
                )
        return _json_rows(self._nested(pl.from_arrow(state)))  # type: ignore[arg-type]

    def decode(self, values: Sequence[bytes | None]) -> pa.Table:
        """Stored values as a table of state columns; a row of nulls for each None.

        Raises:
            ProcessorStateException: a value does not have the aggregate's columns.
        """
        schema = self._bound()
        try:
            text = pl.Series("state", values, dtype=pl.Binary).cast(pl.String)
            self._check_columns(text)
            decoded = text.str.json_decode(pl.Struct(self._stored_types(schema))).struct.unnest()
        except pl.exceptions.PolarsError as error:
            raise ProcessorStateException(
                f"a stored value of the aggregate {self._path} can't be read ({error}). Its columns were changed, or"
                " the changelog was written by something else: give the store a new name"
            ) from error
        flat = []
        for aggregate in self._aggregates:
            column = pl.col(aggregate.column)
            if aggregate.function == "avg":
                flat += [
                    column.struct.field(part).alias(f"{aggregate.column}.{part}") for part in (_AVG_SUM, _AVG_COUNT)
                ]
            else:
                flat.append(_from_json(column, schema.field(aggregate.column).type))
        return decoded.select(flat).to_arrow().cast(schema)

    def _check_columns(self, text: pl.Series) -> None:
        """Every stored value has every column, since `encode` writes them all; one without was written for others."""
        present = text.drop_nulls()
        for aggregate in self._aggregates:
            name = orjson.dumps(aggregate.column).decode()
            if not present.str.contains(f"{name}:", literal=True).all():
                raise pl.exceptions.PolarsError(f"no column {aggregate.column}")

    def finish(self, state: pa.Table) -> pa.Table:
        """What a user sees of the state: one column for each aggregate."""
        columns = {}
        for aggregate in self._aggregates:
            name = aggregate.column
            if aggregate.function == "avg":
                count = state[f"{name}.{_AVG_COUNT}"]
                nothing = pa.scalar(None, pa.int64())
                divisor = pc.if_else(pc.equal(count, 0), nothing, count).cast(pa.float64())
                columns[name] = pc.divide(state[f"{name}.{_AVG_SUM}"], divisor)
            else:
                columns[name] = state[name]
        return pa.table(columns)

    @property
    def stored_as_seen(self) -> bool:
        """Whether the stored JSON is already what a user sees."""
        return all(aggregate.function != "avg" for aggregate in self._aggregates)

    def finish_value(self, value: bytes) -> dict[str, Any]:
        """What a user sees of one stored value, for queries. Raises ValueError for bytes that are not such a value."""
        state = orjson.loads(value)
        if not isinstance(state, dict):
            raise ValueError(f"stored value {value!r} is not the state of {self._path}")
        seen = {}
        for aggregate in self._aggregates:
            part = state.get(aggregate.column)
            if aggregate.function == "avg":
                part = part[_AVG_SUM] / part[_AVG_COUNT] if isinstance(part, Mapping) and part[_AVG_COUNT] else None
            seen[aggregate.column] = part
        return seen

    @property
    def _path(self) -> str:
        return self._aggregates[0].path.rpartition(".")[0]

    def _bound(self) -> pa.Schema:
        if self._schema is None:
            raise AssertionError("bind() comes before merging")
        return self._schema

    def _stored_types(self, schema: pa.Schema) -> dict[str, pl.DataType]:
        types: dict[str, Any] = {}
        for aggregate in self._aggregates:
            if aggregate.function == "avg":
                types[aggregate.column] = pl.Struct({_AVG_SUM: pl.Float64, _AVG_COUNT: pl.Int64})
            else:
                types[aggregate.column] = _json_type(schema.field(aggregate.column).type)
        return types

    def _nested(self, state: pl.DataFrame) -> pl.DataFrame:
        columns = []
        for aggregate in self._aggregates:
            if aggregate.function == "avg":
                parts = [pl.col(f"{aggregate.column}.{part}").alias(part) for part in (_AVG_SUM, _AVG_COUNT)]
                columns.append(pl.struct(parts).alias(aggregate.column))
            else:
                columns.append(pl.col(aggregate.column))
        return state.select(columns)


def json_rows(table: pa.Table) -> list[bytes]:
    """Each row as a JSON object with the table's columns; timestamps in ISO 8601, UTC, microseconds."""
    return _json_rows(pl.from_arrow(table))  # type: ignore[arg-type]


def _json_rows(frame: pl.DataFrame) -> list[bytes]:
    columns = [
        pl.col(name).dt.to_string(_TIME_FORMAT) if isinstance(kind, pl.Datetime) else pl.col(name)
        for name, kind in frame.schema.items()
    ]
    encoded = frame.select(pl.struct(columns).struct.json_encode().cast(pl.Binary)).to_series()
    rows: list[bytes] = encoded.to_list()
    return rows


def _can_be_kept(kind: pa.DataType) -> bool:
    return (
        kind in _INTEGERS
        or kind in _FLOATS
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
    )


def _json_type(kind: pa.DataType) -> Any:
    if kind in _INTEGERS:
        return pl.Int64
    if kind in _FLOATS:
        return pl.Float64
    return pl.Boolean if pa.types.is_boolean(kind) else pl.String


def _from_json(column: pl.Expr, kind: pa.DataType) -> pl.Expr:
    if pa.types.is_timestamp(kind):
        return column.str.to_datetime(_TIME_FORMAT, time_unit="us", time_zone="UTC")
    return column.str.to_date() if pa.types.is_date32(kind) else column
