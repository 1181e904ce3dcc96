"""What Spark makes of one type where it wants another: the rules of ANSI mode (`AnsiTypeCoercion`, `DecimalPrecision`).

Every function answers None where Spark refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streams_runtime.api.expressions.spark_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MOST_DIGITS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    UNSURE,
    VARIANT,
    VOID,
    SparkType,
    array,
    decimal,
    map_of,
    struct,
)

_WIDER = (TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE)
INTEGRAL = frozenset({TINYINT, SMALLINT, INT, BIGINT})
TIMES = frozenset({DATE, TIMESTAMP, TIMESTAMP_NTZ})
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_LEAST_SCALE = 6  # digits behind the point that a result keeps when it has more than 38 in all


def is_number(kind: SparkType) -> bool:
    """Whether it is a number of any kind."""
    return kind in _WIDER or kind.name == "decimal"


def is_interval(kind: SparkType) -> bool:
    """Whether it is a duration, or a number of months."""
    return kind.name.startswith("interval")


def is_atomic(kind: SparkType) -> bool:
    """Whether it has no parts, and is no VOID."""
    return kind.name not in ("array", "map", "struct", "void")


def is_ordered(kind: SparkType) -> bool:
    """Whether two values of the type are smaller and larger."""
    return not any(each.name in ("map", "variant") for each in kind.walk())


def as_decimal(kind: SparkType) -> SparkType:
    """The decimal that holds every value of an integral type; a decimal itself."""
    return kind if kind.name == "decimal" else decimal(_DIGITS[kind], 0)


def bounded(precision: int, scale: int) -> SparkType:
    """The decimal of a result: of more than 38 digits those behind the point go first, down to six."""
    if precision <= MOST_DIGITS:
        return decimal(precision, scale)
    before = precision - scale
    return decimal(MOST_DIGITS, max(MOST_DIGITS - before, min(scale, _LEAST_SCALE)))


def _wider_decimal(one: SparkType, other: SparkType) -> SparkType:
    (p1, s1), (p2, s2) = one.parts, other.parts
    scale, before = max(s1, s2), max(p1 - s1, p2 - s2)
    if before + scale <= MOST_DIGITS:
        return decimal(before + scale, scale)
    return decimal(MOST_DIGITS, max(0, MOST_DIGITS - before))


def _wider_number(one: SparkType, other: SparkType) -> SparkType:
    if one.name != "decimal" and other.name != "decimal":
        wider = _WIDER[max(_WIDER.index(one), _WIDER.index(other))]
        return DOUBLE if wider == FLOAT and one != other else wider
    if one in (FLOAT, DOUBLE) or other in (FLOAT, DOUBLE):
        return DOUBLE
    return _wider_decimal(as_decimal(one), as_decimal(other))


def wider(one: SparkType, other: SparkType, strings: bool = True) -> SparkType | None:
    """The type that values of both become, as in `coalesce`; `strings`: whether a text becomes what it stands with."""
    if other in (one, VOID):
        return one
    if one == VOID:
        return other
    if is_number(one) and is_number(other):
        return _wider_number(one, other)
    return _wider_unlike(one, other, strings)


def _wider_unlike(one: SparkType, other: SparkType, strings: bool) -> SparkType | None:
    if one in TIMES and other in TIMES:
        return TIMESTAMP if TIMESTAMP in (one, other) else TIMESTAMP_NTZ
    if STRING in (one, other):
        return _promoted(other if one == STRING else one) if strings else None
    return _wider_inside(one, other, strings) if one.name == other.name else None


def _promoted(kind: SparkType) -> SparkType | None:
    """What a text becomes beside a value of another type."""
    if kind in INTEGRAL:
        return BIGINT
    if is_number(kind):
        return DOUBLE
    return kind if is_atomic(kind) and not is_interval(kind) else None


def _wider_inside(one: SparkType, other: SparkType, strings: bool) -> SparkType | None:
    if one.name == "struct" and [name.lower() for name, _ in one.parts] != [name.lower() for name, _ in other.parts]:
        return None
    inner = [wider(a, b, strings) for a, b in zip(one.inner, other.inner, strict=False)]
    known = [each for each in inner if each is not None]
    if len(known) != len(inner) or len(one.inner) != len(other.inner) or not inner:
        return None
    if one.name == "struct":
        return struct(*((name, kind) for (name, _), kind in zip(one.parts, known, strict=True)))
    if one.name == "map" and wider(one.parts[0], other.parts[0], strings=False) is None:
        return None
    return array(known[0]) if one.name == "array" else map_of(known[0], known[1])


def widest(kinds: Sequence[SparkType]) -> SparkType | None:
    """The type that values of all become; UNSURE where it depends on the order in which Spark goes through them."""
    texts = [kind for kind in kinds if STRING in kind.walk()]
    found = _folded(kinds)
    others = [kind for kind in kinds if kind not in texts]
    return found if found == _folded([*texts, *others]) == _folded([*others, *texts]) else UNSURE


def _folded(kinds: Iterable[SparkType]) -> SparkType | None:
    found: SparkType | None = VOID
    for kind in kinds:
        found = None if found is None else wider(found, kind)
    return found


def can_cast(kind: SparkType, to: SparkType) -> bool:
    """Whether `cast(… as …)` is allowed; what then can't be converted fails when it runs."""
    if kind in (to, VOID):
        return True
    if kind == VARIANT:
        return all(each.name != "map" or each.parts[0] == STRING for each in to.walk())
    if to == VARIANT:
        return not any(each.name in ("map", "struct") or is_interval(each) for each in kind.walk())
    if to == STRING:
        return True
    if kind.name in ("array", "map", "struct") or to.name in ("array", "map", "struct"):
        same = kind.name == to.name and len(kind.inner) == len(to.inner)
        return same and all(can_cast(a, b) for a, b in zip(kind.inner, to.inner, strict=True))
    return _can_cast_atoms(kind, to)


def _can_cast_atoms(kind: SparkType, to: SparkType) -> bool:
    if kind == STRING:
        return True
    if is_number(kind):
        return is_number(to) or to in (BOOLEAN, TIMESTAMP)
    if kind == BOOLEAN:
        return is_number(to)
    if kind == TIMESTAMP:
        return is_number(to) or to in TIMES
    return kind in TIMES and to in TIMES


def implicit(kind: SparkType, to: SparkType) -> SparkType | None:
    """What an argument becomes where a function takes one type, exactly: what a table of that type would store."""
    if kind in (to, VOID):
        return to
    if to == STRING:
        return to if is_atomic(kind) else None
    fits = kind == STRING or (is_number(kind) and is_number(to)) or (kind in TIMES and to in TIMES)
    return to if fits and is_atomic(to) else None
