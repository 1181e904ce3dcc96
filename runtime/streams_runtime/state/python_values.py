"""Values that a user's class gives as a column of its declared type; nothing is left out unseen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from streams_runtime.api.mistakes import suggestion


def as_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The column. Raises ValueError, TypeError, OverflowError or pyarrow.ArrowException: a value is not of the type."""
    for value in values:
        _check_fields(value, kind)
    return pa.array(values, kind)


def _check_fields(value: Any, kind: pa.DataType) -> None:
    """Arrow leaves out what a struct does not have, and takes what is missing for null."""
    if pa.types.is_struct(kind) and isinstance(value, Mapping):
        names = {each.name: each.type for each in kind}
        for name in value:
            if name not in names:
                raise ValueError(f"there is no field {name!r}; {suggestion(str(name), names)}")
        for name, inner in names.items():
            if name not in value:
                raise ValueError(f"the field {name!r} is missing")
            _check_fields(value[name], inner)
    elif pa.types.is_list(kind) and pa.types.is_nested(kind.value_type) and isinstance(value, Sequence):
        for each in value:
            _check_fields(each, kind.value_type)
