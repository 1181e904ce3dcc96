"""The types of arithmetic, comparisons and conditions; None where Spark refuses, `UNSURE` where only Spark knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from streams_runtime.api.expressions.coercion import (
    INTEGRAL,
    TIMES,
    as_decimal,
    bounded,
    is_atomic,
    is_interval,
    is_number,
    is_ordered,
    wider,
)
from streams_runtime.api.expressions.spark_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    UNSURE,
    VOID,
    SparkType,
    array,
    decimal,
    simple,
)

_WHOLE_DAYS = ("interval day", "interval month", "interval year")
_DAYS = frozenset({simple("tinyint"), simple("smallint"), INT, VOID})


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand; `digits`: how many a whole number has that is written there."""

    kind: SparkType
    digits: int | None = None


def arithmetic(operator: type[exp.Expr], left: Operand, right: Operand) -> SparkType | None:
    """The type of `left operator right`."""
    kinds = left.kind, right.kind
    if any(is_interval(kind) for kind in kinds):
        return _with_interval(operator, *kinds)
    if operator in (exp.Add, exp.Sub) and any(kind in TIMES for kind in kinds):
        return _of_times(operator, *kinds)
    if all(kind in (STRING, VOID) for kind in kinds):
        return DOUBLE if kinds == (VOID, VOID) and operator is not exp.IntDiv else _texts(kinds)
    if not all(is_number(kind) or kind in (STRING, VOID) for kind in kinds):
        return None
    if operator is exp.Div and left.kind == VOID:
        return DOUBLE
    return _of_numbers(operator, _number(left, right.kind), _number(right, left.kind))


def _texts(kinds: tuple[SparkType, ...]) -> SparkType | None:
    return None if STRING in kinds else UNSURE


def _number(operand: Operand, other: SparkType) -> Operand:
    """What a text or a null is beside a number."""
    if operand.kind == VOID:
        return Operand(other if other != STRING else DOUBLE)
    if operand.kind == STRING:
        return Operand(BIGINT if other in INTEGRAL else DOUBLE)
    return operand


def _of_numbers(operator: type[exp.Expr], left: Operand, right: Operand) -> SparkType | None:
    kinds = left.kind, right.kind
    floating = FLOAT in kinds or DOUBLE in kinds
    if operator is exp.IntDiv:
        return None if floating else BIGINT
    if "decimal" in (left.kind.name, right.kind.name) and not floating:
        (p1, s1), (p2, s2) = _exact(left).parts, _exact(right).parts
        return _DECIMALS[operator](p1, s1, p2, s2)
    if operator is exp.Div:
        return DOUBLE
    return wider(*kinds)


def _exact(operand: Operand) -> SparkType:
    if operand.digits is not None and operand.kind.name != "decimal":
        return decimal(operand.digits, 0)
    return as_decimal(operand.kind)


def _sum(p1: int, s1: int, p2: int, s2: int) -> SparkType:
    scale = max(s1, s2)
    return bounded(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _quotient(p1: int, s1: int, p2: int, s2: int) -> SparkType:
    scale = max(6, s1 + p2 + 1)
    return bounded(p1 - s1 + s2 + scale, scale)


def _remainder(p1: int, s1: int, p2: int, s2: int) -> SparkType:
    scale = max(s1, s2)
    return bounded(min(p1 - s1, p2 - s2) + scale, scale)


_DECIMALS: Mapping[type[exp.Expr], Callable[[int, int, int, int], SparkType]] = {
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Mul: lambda p1, s1, p2, s2: bounded(p1 + p2 + 1, s1 + s2),
    exp.Div: _quotient,
    exp.Mod: _remainder,
}


def _with_interval(operator: type[exp.Expr], left: SparkType, right: SparkType) -> SparkType | None:
    time, interval = (right, left) if is_interval(left) else (left, right)
    if operator not in (exp.Add, exp.Sub) or time not in TIMES or (operator is exp.Sub and time == right):
        return UNSURE
    return TIMESTAMP if time == DATE and interval.name not in _WHOLE_DAYS else time


def _of_times(operator: type[exp.Expr], left: SparkType, right: SparkType) -> SparkType | None:
    """Of dates and numbers of days, and differences of two times."""
    if operator is exp.Add:
        return DATE if (left == DATE and right in _DAYS) or (right == DATE and left in _DAYS) else None
    if left == DATE and right in _DAYS:
        return DATE
    if not all(kind in TIMES or kind in (STRING, VOID) for kind in (left, right)):
        return None
    return simple("interval day" if {left, right} <= {DATE, STRING, VOID} else "interval day to second")


def comparison(left: SparkType, right: SparkType) -> SparkType | None:
    """BOOLEAN where the two are compared, which is alike for equality and for order."""
    common = wider(left, right, strings=STRING in (left, right))
    return BOOLEAN if common is not None and is_ordered(common) else None


def conjunction(kinds: Sequence[SparkType]) -> SparkType | None:
    """BOOLEAN for what `and` and `or` take."""
    if not all(kind in (BOOLEAN, STRING, VOID) for kind in kinds):
        return None
    if BOOLEAN in kinds:
        return BOOLEAN
    return None if STRING in kinds else UNSURE


def bits(left: SparkType, right: SparkType) -> SparkType | None:
    """The type of `&`, `|` and `^`."""
    if VOID in (left, right) or (STRING in (left, right) and not {left, right} & INTEGRAL):
        return UNSURE
    if left in INTEGRAL and right in INTEGRAL:
        return wider(left, right)
    return BIGINT if STRING in (left, right) else None


def concatenation(kinds: Sequence[SparkType]) -> SparkType | None:
    """The type of `concat` and `||`."""
    if any(kind.name in ("map", "struct") for kind in kinds):
        return None
    if any(kind.name == "array" for kind in kinds):
        found = kinds[0]
        for kind in kinds[1:]:
            common = wider(found, kind) if kind.name == found.name == "array" else None
            if common is None:
                return None if VOID not in kinds else UNSURE
            found = common
        return found
    return BINARY if all(kind == BINARY for kind in kinds) else STRING


def element(holder: SparkType, index: SparkType) -> SparkType | None:
    """The type of `holder[index]`, the index being no text that is written there."""
    if holder.name == "array":
        return holder.parts[0] if index in INTEGRAL or index == VOID else None
    if holder.name == "map":
        return UNSURE
    return None if is_atomic(holder) or holder == VOID else UNSURE


def field(holder: SparkType, name: str) -> SparkType | None:
    """The type of `holder.name`; UNSURE where it has several such fields."""
    if holder.name == "struct":
        found = [kind for each, kind in holder.parts if each.lower() == name.lower()]
        return found[0] if len(found) == 1 else UNSURE if found else None
    if holder.name == "array" and holder.parts[0].name == "struct":
        inner = field(holder.parts[0], name)
        return inner if inner is None or inner == UNSURE else array(inner)
    if holder.name == "map":
        return holder.parts[1] if holder.parts[0] == STRING else UNSURE
    return None
