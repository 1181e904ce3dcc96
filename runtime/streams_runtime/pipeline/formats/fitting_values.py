"""What parses a value may take more than steps can: texts that are no UTF-8, infinite numbers, times of no calendar.

Python's and Polars' times go from the year 1 to 9999; Spark's go on. One that lies outside (microseconds where
milliseconds were meant, say) would end the client in the first step that looks at it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

Rules = dict[type[DataType], Callable[[Column], Column]]
"""By type, what a value has to be that is not null."""

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, from 1970-01-01
_DAY = 86_400_000_000  # microseconds


def _is_finite(value: Column) -> Column:
    return F.abs(value) != F.lit(math.inf)


def _is_time(value: Column) -> Column:
    return F.unix_micros(value.cast("timestamp")).between(_FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1)


def _is_date(value: Column) -> Column:
    return F.unix_date(value).between(_FIRST_DAY, _LAST_DAY)


TEXTS: Rules = {StringType: F.is_valid_utf8}
NUMBERS: Rules = {FloatType: _is_finite, DoubleType: _is_finite}
TIMES: Rules = {TimestampType: _is_time, TimestampNTZType: _is_time, DateType: _is_date}


def fits(value: Column, kind: DataType, rules: Rules) -> Column | None:
    """Whether all that a value of this type holds is as the rules say, at any depth; true of null.

    None: they say nothing of the type.
    """
    match kind:
        case StructType():
            return _all(fits(value[field.name], field.dataType, rules) for field in kind)
        case ArrayType():
            return _each(value, kind.elementType, rules)
        case MapType():
            keys, values = F.map_keys(value), F.map_values(value)
            return _all([_each(keys, kind.keyType, rules), _each(values, kind.valueType, rules)])
        case _:
            rule = rules.get(type(kind))
            return None if rule is None else F.coalesce(rule(value), F.lit(True))


def _each(values: Column, kind: DataType, rules: Rules) -> Column | None:
    def element(each: Column) -> Column:
        found = fits(each, kind, rules)
        return F.lit(True) if found is None else found

    return None if fits(F.lit(None), kind, rules) is None else F.coalesce(F.forall(values, element), F.lit(True))


def _all(parts: Iterable[Column | None]) -> Column | None:
    found = [part for part in parts if part is not None]
    return reduce(and_, found) if found else None
