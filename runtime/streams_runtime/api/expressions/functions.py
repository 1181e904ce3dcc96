"""Functions whose results have types that follow from their arguments'; see `signatures` for all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from streams_runtime.api.expressions.coercion import (
    INTEGRAL,
    can_cast,
    implicit,
    is_number,
    is_ordered,
    wider,
    widest,
)
from streams_runtime.api.expressions.operators import Operand, arithmetic, comparison, concatenation
from streams_runtime.api.expressions.spark_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MOST_DIGITS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    UNSURE,
    VOID,
    SparkType,
    array,
    decimal,
    map_of,
    struct,
)

Kinds = Sequence[SparkType]
Rule = Callable[[Kinds], SparkType | None]
CASTS: Mapping[str, SparkType] = {
    "boolean": BOOLEAN,
    "tinyint": TINYINT,
    "smallint": SMALLINT,
    "int": INT,
    "bigint": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "decimal": decimal(10, 0),
    "date": DATE,
    "timestamp": TIMESTAMP,
    "binary": BINARY,
    "string": STRING,
}
"""Functions that cast."""


def _magnitude(kinds: Kinds) -> SparkType | None:
    (kind,) = kinds
    if kind in (STRING, VOID):
        return DOUBLE
    return kind if is_number(kind) else None


def _whole(kinds: Kinds) -> SparkType | None:
    (kind,) = kinds
    if kind.name == "decimal":
        precision, scale = kind.parts
        return decimal(min(precision - scale + 1, MOST_DIGITS), 0) if scale else kind
    return BIGINT if is_number(kind) or kind in (STRING, VOID) else None


def rounded(kind: SparkType, digits: int | None) -> SparkType | None:
    """The type of `round` to so many digits behind the point; None of them: they are not written as a number."""
    if kind.name != "decimal":
        return _magnitude([kind])
    if digits is None:
        return UNSURE
    precision, scale = kind.parts
    before = precision - scale + 1
    if digits < 0:
        return decimal(min(max(before, 1 - digits), MOST_DIGITS), 0)
    kept = min(scale, digits)
    return decimal(min(before + kept, MOST_DIGITS), kept)


def _common(kinds: Kinds) -> SparkType | None:
    return widest(kinds)


def _choice(kinds: Kinds) -> SparkType | None:
    condition, one, other = kinds
    return wider(one, other) if condition in (BOOLEAN, VOID) else None


def _nullif(kinds: Kinds) -> SparkType | None:
    one, other = kinds
    return None if comparison(one, other) is None else one


def _remainder(kinds: Kinds) -> SparkType | None:
    if any(kind.name == "decimal" for kind in kinds) and any(kind in INTEGRAL for kind in kinds):
        return UNSURE  # of a whole number that is written there Spark counts the digits
    return arithmetic(exp.Mod, *map(Operand, kinds))


def _extreme(kinds: Kinds) -> SparkType | None:
    if len(kinds) < 2:
        return None
    if any(STRING in kind.walk() for kind in kinds) and len({*kinds} - {VOID}) > 1:
        return UNSURE
    common = widest(kinds)
    return common if common is not None and is_ordered(common) else None


def _list(kinds: Kinds) -> SparkType | None:
    common = widest(kinds)
    return common if common in (None, UNSURE) else array(common)


def _pairs(kinds: Kinds) -> SparkType | None:
    if len(kinds) % 2 or not kinds:
        return UNSURE
    key, value = widest(kinds[::2]), widest(kinds[1::2])
    if UNSURE in (key, value):
        return UNSURE
    if key is None or value is None or any(each.name == "map" for each in key.walk()):
        return None
    return UNSURE if key == VOID or not is_ordered(key) else map_of(key, value)


def _element_at(kinds: Kinds) -> SparkType | None:
    holder, index = kinds
    if holder.name == "array":
        return holder.parts[0] if index in (TINYINT, SMALLINT, INT) else UNSURE
    if holder.name == "map":
        return holder.parts[1] if index == holder.parts[0] else UNSURE
    return None if holder != VOID else UNSURE


def _get(kinds: Kinds) -> SparkType | None:
    holder, index = kinds
    if holder.name != "array":
        return None if holder != VOID else UNSURE
    return holder.parts[0] if index in INTEGRAL else UNSURE


def _of_array(result: Callable[[SparkType], SparkType | None]) -> Rule:
    """A function of one array: `result` of its element's type."""

    def rule(kinds: Kinds) -> SparkType | None:
        (kind,) = kinds
        if kind == VOID:
            return UNSURE
        return result(kind.parts[0]) if kind.name == "array" else None

    return rule


def _of_map(result: Callable[[SparkType, SparkType], SparkType]) -> Rule:
    def rule(kinds: Kinds) -> SparkType | None:
        (kind,) = kinds
        if kind == VOID:
            return UNSURE
        return result(*kind.parts) if kind.name == "map" else None

    return rule


def _with_element(result: Callable[[SparkType], SparkType]) -> Rule:
    """A function of an array and a value that is one of its elements."""

    def rule(kinds: Kinds) -> SparkType | None:
        holder, value = kinds
        if holder.name != "array":
            return None if holder != VOID else UNSURE
        return result(holder) if value == holder.parts[0] and is_ordered(value) else UNSURE

    return rule


def _of_two_arrays(result: Callable[[SparkType], SparkType]) -> Rule:
    def rule(kinds: Kinds) -> SparkType | None:
        if any(kind.name != "array" and kind != VOID for kind in kinds):
            return None
        one, other = kinds
        return result(one) if one == other and is_ordered(one) and one != VOID else UNSURE

    return rule


def _json(kinds: Kinds) -> SparkType | None:
    if len(kinds) != 1 or kinds[0] == VOID:
        return UNSURE
    return STRING if kinds[0].name in ("array", "map", "struct", "variant") else None


def _reverse(kinds: Kinds) -> SparkType | None:
    (kind,) = kinds
    return kind if kind.name == "array" else implicit(kind, STRING)


def _part_of_text(kinds: Kinds) -> SparkType | None:
    """A text or bytes, and numbers."""
    text, *numbers = kinds
    if any(implicit(each, INT) is None for each in numbers) or implicit(text, STRING) is None:
        return None
    return UNSURE if text == BINARY else STRING


def _padded(kinds: Kinds) -> SparkType | None:
    if BINARY in kinds:
        return UNSURE
    text, number, *pad = kinds
    fits = implicit(number, INT) is not None and all(implicit(each, STRING) is not None for each in (text, *pad))
    return STRING if fits else None


def _joined(kinds: Kinds) -> SparkType | None:
    separator, *texts = kinds
    if implicit(separator, STRING) is None:
        return None
    return STRING if all(implicit(each, STRING) or each == array(STRING) for each in texts) else UNSURE


def _cut(kinds: Kinds) -> SparkType | None:
    holder, *numbers = kinds
    if holder.name != "array":
        return None if holder != VOID else UNSURE
    return holder if all(each == INT for each in numbers) else UNSURE


def _array_join(kinds: Kinds) -> SparkType | None:
    texts = kinds[0] == array(STRING) and all(each == STRING for each in kinds[1:])
    return STRING if texts else UNSURE


def _sorted_array(kinds: Kinds) -> SparkType | None:
    holder, *ascending = kinds
    if holder.name != "array":
        return None if holder != VOID else UNSURE
    if any(each != BOOLEAN for each in ascending):
        return UNSURE
    return holder if is_ordered(holder) else None


def _map_key(kinds: Kinds) -> SparkType | None:
    holder, key = kinds
    if holder.name != "map":
        return None if holder != VOID else UNSURE
    return BOOLEAN if key == holder.parts[0] else UNSURE


RULES: Mapping[str, tuple[int, int, Rule]] = {
    **dict.fromkeys(("abs", "negative", "positive"), (1, 1, _magnitude)),
    **dict.fromkeys(("ceil", "ceiling", "floor"), (1, 1, _whole)),
    "coalesce": (1, 999, _common),
    **dict.fromkeys(("nvl", "ifnull"), (2, 2, _common)),
    "nvl2": (3, 3, lambda kinds: _common(kinds[1:])),
    "if": (3, 3, _choice),
    "nullif": (2, 2, _nullif),
    "equal_null": (2, 2, lambda kinds: comparison(*kinds)),
    "mod": (2, 2, _remainder),
    **dict.fromkeys(("greatest", "least"), (2, 999, _extreme)),
    "array": (0, 999, _list),
    "map": (0, 999, _pairs),
    "concat": (1, 999, concatenation),
    "concat_ws": (2, 999, _joined),
    "element_at": (2, 2, _element_at),
    "get": (2, 2, _get),
    "sort_array": (1, 2, _sorted_array),
    "array_sort": (1, 1, _of_array(lambda each: array(each) if is_ordered(each) else None)),
    "array_distinct": (1, 1, _of_array(lambda each: array(each) if is_ordered(each) else None)),
    **dict.fromkeys(("array_max", "array_min"), (1, 1, _of_array(lambda each: each if is_ordered(each) else None))),
    "array_compact": (1, 1, _of_array(array)),
    "flatten": (1, 1, _of_array(lambda each: each if each.name == "array" else None)),
    "map_keys": (1, 1, _of_map(lambda key, _: array(key))),
    "map_values": (1, 1, _of_map(lambda _, value: array(value))),
    "map_entries": (1, 1, _of_map(lambda key, value: array(struct(("key", key), ("value", value))))),
    "map_contains_key": (2, 2, _map_key),
    "array_contains": (2, 2, _with_element(lambda _: BOOLEAN)),
    "array_position": (2, 2, _with_element(lambda _: BIGINT)),
    "array_remove": (2, 2, _with_element(lambda holder: holder)),
    **dict.fromkeys(("array_append", "array_prepend"), (2, 2, _with_element(lambda holder: holder))),
    **dict.fromkeys(("array_union", "array_intersect", "array_except"), (2, 2, _of_two_arrays(lambda one: one))),
    "arrays_overlap": (2, 2, _of_two_arrays(lambda _: BOOLEAN)),
    "array_join": (2, 3, _array_join),
    "array_repeat": (2, 2, lambda kinds: UNSURE if kinds[1] not in INTEGRAL - {BIGINT} else array(kinds[0])),
    "slice": (3, 3, _cut),
    "to_json": (1, 2, _json),
    "reverse": (1, 1, _reverse),
    **dict.fromkeys(("substring", "substr"), (2, 3, _part_of_text)),
    **dict.fromkeys(("left", "right"), (2, 2, _part_of_text)),
    **dict.fromkeys(("lpad", "rpad"), (2, 3, _padded)),
    "to_timestamp": (1, 1, lambda kinds: None if implicit(kinds[0], STRING) is None else TIMESTAMP),
    **dict.fromkeys(("now", "current_timestamp"), (0, 0, lambda _: TIMESTAMP)),
    **dict.fromkeys(("current_date", "curdate"), (0, 0, lambda _: DATE)),
}
"""By name: how many arguments at least and at most, and the type of the result."""


def cast_by(name: str, kinds: Kinds) -> SparkType | None:
    """The result of a function of CASTS."""
    return CASTS[name] if can_cast(kinds[0], CASTS[name]) else None
