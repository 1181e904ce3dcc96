"""The types that a process step declares, as Arrow has them, and how their values lie in a store as JSON.

The JSON is that of aggregates and toTable (batch.json_columns): times as text in ISO 8601, bytes in base64, NaN and
infinities as texts. Only types that JSON holds without a loss are declared (api.sql.state_types), so that what a
processor gets back is what it put.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any

import orjson
import pyarrow as pa
from sqlglot import exp

from streams_runtime.api.flow.known_columns import Type, type_named
from streams_runtime.api.schemas.ddl_schema import parse_schema
from streams_runtime.batch.json_columns import number_of, with_texts
from streams_runtime.errors import TopologyException
from streams_runtime.state.aggregates.user_classes.python_values import as_arrow

TIMESTAMP = pa.timestamp("us", tz="UTC")
_SIMPLE: Mapping[exp.DType, pa.DataType] = {
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
}
_Convert = Callable[[Any], Any]


def columns_type(ddl: str) -> pa.StructType:
    """The columns of a schema as a struct, of DDL that the checks have accepted. Raises TopologyException otherwise."""
    columns, problems = parse_schema(ddl)
    if columns is None or problems:
        raise TopologyException(f"{ddl!r} is no schema; the checks of a resource say why")
    return pa.struct([(column.name, _arrow(column.type)) for column in columns])


def key_type(ddl: str) -> pa.DataType:
    """The type of a key, likewise."""
    return _arrow(type_named(ddl))


def _arrow(kind: Type | None) -> pa.DataType:
    if kind is not None and kind.is_type(exp.DType.ARRAY):
        return pa.list_(_arrow(kind.expressions[0]))
    if kind is not None and kind.is_type(exp.DType.STRUCT):
        return pa.struct([(each.name, _arrow(each.args["kind"])) for each in kind.expressions])
    found = None if kind is None or not isinstance(kind.this, exp.DType) else _SIMPLE.get(kind.this)
    if found is None:
        raise TopologyException(f"{kind} is not kept in JSON; the checks of a resource say what is")
    return found


class ValueCodec:
    """Values of one declared type: checked, and to and from the bytes in a store."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self._to_json, self._of_json = _converters(kind)

    def checked(self, value: Any) -> pa.Array:
        """The value as a column of one row, which later changes of it do not reach.

        Raises ValueError, TypeError, OverflowError or pyarrow.ArrowException: it is not of the type; nothing is lost
        or filled in unseen.
        """
        return as_arrow([value], self.kind)

    def encode(self, value: Any) -> bytes:
        """The stored bytes of a value that is not None. Raises as `checked`."""
        plain = self.checked(value)[0].as_py()
        return orjson.dumps(with_texts(self._to_json(plain)))

    def decode(self, data: bytes) -> Any:
        """A new value of stored bytes; a column that was not there yet when they were written is None.

        Raises ValueError, TypeError or pyarrow.ArrowException: they are of another type.
        """
        return pa.array([self._of_json(orjson.loads(data))], self.kind)[0].as_py()


def _same(value: Any) -> Any:
    return value


def _converters(kind: pa.DataType) -> tuple[_Convert, _Convert]:
    """From a Python value of the type to what JSON has, and back."""
    if pa.types.is_list(kind):
        to_json, of_json = _converters(kind.value_type)
        return _each(to_json), _each(of_json)
    if pa.types.is_struct(kind):
        fields = {field.name: _converters(field.type) for field in kind}
        to_json = _fields({name: each for name, (each, _) in fields.items()})
        return to_json, _fields({name: each for name, (_, each) in fields.items()})
    if pa.types.is_timestamp(kind):
        to_text = _unless_none(lambda value: value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        return to_text, _unless_none(datetime.fromisoformat)
    if pa.types.is_date(kind):
        return _unless_none(date.isoformat), _unless_none(date.fromisoformat)
    if pa.types.is_binary(kind):
        of_text = _unless_none(lambda value: base64.b64decode(value, validate=True))
        return _unless_none(lambda value: base64.b64encode(value).decode()), of_text
    return _same, number_of if pa.types.is_floating(kind) else _same


def _unless_none(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def _each(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else [convert(each) for each in value]


def _fields(converts: Mapping[str, _Convert]) -> _Convert:
    items = tuple(converts.items())
    return lambda value: None if value is None else {name: convert(value.get(name)) for name, convert in items}
