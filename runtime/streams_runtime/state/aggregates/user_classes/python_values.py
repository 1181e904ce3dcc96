"""Values that a user's class gives as a column of its declared type; nothing is left out unseen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from streams_runtime.api.reading.mistakes import suggestion

_Check = Callable[[Any], None]


def as_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The column. Raises ValueError, TypeError, OverflowError or pyarrow.ArrowException: a value is not of the type."""
    check = _check_of(kind)
    if check is not None:
        for value in values:
            check(value)
    return pa.array(values, kind)


def _check_of(kind: pa.DataType) -> _Check | None:
    """What finds fields too many or too few: Arrow leaves out the ones, and takes the others for null."""
    if pa.types.is_struct(kind):
        return _fields_check({field.name: _check_of(field.type) for field in kind})
    inner = _check_of(kind.value_type) if pa.types.is_list(kind) else None
    return None if inner is None else _elements_check(inner)


def _fields_check(fields: Mapping[str, _Check | None]) -> _Check:
    inner = [(name, check) for name, check in fields.items() if check is not None]

    def check(value: Any) -> None:
        if not isinstance(value, dict):
            return  # None, or what Arrow itself refuses
        if value.keys() != fields.keys():
            _refuse(value, fields)
        for name, of_field in inner:
            of_field(value[name])

    return check


def _elements_check(of_element: _Check) -> _Check:
    def check(value: Any) -> None:
        if value is not None:
            for element in value:
                of_element(element)

    return check


def _refuse(value: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    for name in value:
        if name not in fields:
            raise ValueError(f"there is no field {name!r}; {suggestion(str(name), fields)}")
    missing = next(name for name in fields if name not in value)
    raise ValueError(f"the field {missing!r} is missing")
