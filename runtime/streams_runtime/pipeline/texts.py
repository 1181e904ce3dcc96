"""Whether the texts in a parsed value are UTF-8, where what parses it takes any bytes for a text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType


def are_utf8(value: Column, kind: DataType) -> Column | None:
    """Whether all texts of a value of this type are, at any depth; true of null. None: the type has no texts."""
    match kind:
        case StringType():
            return F.coalesce(F.is_valid_utf8(value), F.lit(True))
        case StructType():
            return _all(are_utf8(value[field.name], field.dataType) for field in kind)
        case ArrayType():
            return _each(value, kind.elementType)
        case MapType():
            return _all([_each(F.map_keys(value), kind.keyType), _each(F.map_values(value), kind.valueType)])
        case _:
            return None


def _each(values: Column, kind: DataType) -> Column | None:
    def fits(each: Column) -> Column:
        found = are_utf8(each, kind)
        return F.lit(True) if found is None else found

    return None if are_utf8(F.lit(None), kind) is None else F.coalesce(F.forall(values, fits), F.lit(True))


def _all(parts: Iterable[Column | None]) -> Column | None:
    found = [part for part in parts if part is not None]
    return reduce(and_, found) if found else None
