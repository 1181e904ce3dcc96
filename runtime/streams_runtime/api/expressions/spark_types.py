"""Spark's types as values that can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlglot import exp

from streams_runtime.api.spec.limits import DEEPEST

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMES = {
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "float",
    exp.DType.DOUBLE: "double",
    exp.DType.BOOLEAN: "boolean",
    exp.DType.TEXT: "string",
    exp.DType.BINARY: "binary",
    exp.DType.VARBINARY: "binary",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
    exp.DType.VARIANT: "variant",
}
_KEPT, _MOST_PARTS = 256, 1000
MOST_DIGITS = 38
"""The precision that a decimal has at most."""


@dataclass(frozen=True, slots=True)
class SparkType:
    """`name` as Spark writes it (`int`, `decimal`, `array`, `interval day`). `parts`: of a decimal its precision and
    scale, of an array its element, of a map its key and value, of a struct pairs of a name and a type.
    """

    name: str
    parts: tuple[Any, ...] = ()

    def __str__(self) -> str:
        if self.name == "struct":
            return f"struct<{', '.join(f'{_quoted(name)}: {kind}' for name, kind in self.parts)}>"
        if self.name == "decimal":
            return f"decimal({self.parts[0]},{self.parts[1]})"
        return f"{self.name}<{', '.join(map(str, self.parts))}>" if self.parts else self.name

    @property
    def shown(self) -> str:
        """The type as messages have it."""
        if self.name == "struct":
            return f"STRUCT<{', '.join(f'{_quoted(name)}: {kind.shown}' for name, kind in self.parts)}>"
        return (
            f"{self.name.upper()}<{', '.join(each.shown for each in self.parts)}>" if self.inner else str(self).upper()
        )

    @property
    def inner(self) -> tuple[SparkType, ...]:
        """The types that it is made of."""
        if self.name == "struct":
            return tuple(kind for _, kind in self.parts)
        return self.parts if self.name in ("array", "map") else ()

    def walk(self) -> Iterator[SparkType]:
        """The type, and all those within it."""
        yield self
        for each in self.inner:
            yield from each.walk()


def is_small(kind: SparkType) -> bool:
    """Whether everything within the type can be gone through: a few lambdas or steps make one of 2^30 parts."""
    left, count = [(kind, 1)], 0
    while left:
        each, depth = left.pop()
        count += 1
        if count > _MOST_PARTS or depth > DEEPEST:
            return False
        left += ((inner, depth + 1) for inner in each.inner)
    return True


def simple(name: str) -> SparkType:
    """A type without parts."""
    return SparkType(name)


def decimal(precision: int, scale: int) -> SparkType:
    """DECIMAL(precision, scale)."""
    return SparkType("decimal", (precision, scale))


def array(element: SparkType) -> SparkType:
    """ARRAY<element>."""
    return SparkType("array", (element,))


def map_of(key: SparkType, value: SparkType) -> SparkType:
    """MAP<key, value>."""
    return SparkType("map", (key, value))


def struct(*fields: tuple[str, SparkType]) -> SparkType:
    """STRUCT of the fields."""
    return SparkType("struct", fields)


TINYINT, SMALLINT, INT, BIGINT = simple("tinyint"), simple("smallint"), simple("int"), simple("bigint")
FLOAT, DOUBLE, BOOLEAN, STRING = simple("float"), simple("double"), simple("boolean"), simple("string")
BINARY, DATE, TIMESTAMP, VOID = simple("binary"), simple("date"), simple("timestamp"), simple("void")
TIMESTAMP_NTZ, VARIANT = simple("timestamp_ntz"), simple("variant")
UNSURE = simple("unsure")
"""The answer that only Spark can give."""


class _Tree:
    """A tree by what it is, and not by what it says: comparing two costs as much as reading one."""

    def __init__(self, tree: exp.DataType) -> None:
        self.tree = tree

    def __hash__(self) -> int:
        return id(self.tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Tree) and other.tree is self.tree


def of_tree(kind: exp.Expr | None) -> SparkType | None:
    """The type that a tree of DDL says; None for one that is not known exactly, as of CHAR or of a collation."""
    if not isinstance(kind, exp.DataType):
        return None
    return _with_parts(_Tree(kind)) if kind.expressions else _read(kind)


@lru_cache(_KEPT)
def _with_parts(same: _Tree) -> SparkType | None:
    """Every expression over a struct asks for its type again, and trees are never changed."""
    return _read(same.tree)


def _read(kind: exp.DataType) -> SparkType | None:
    name, inner = kind.this, kind.expressions
    if name == exp.DType.DECIMAL:
        return _decimal(inner)
    if name == exp.DType.STRUCT:
        fields = [(each.name, of_tree(each.args.get("kind"))) for each in inner if isinstance(each, exp.ColumnDef)]
        known = tuple((name, field) for name, field in fields if field is not None)
        return SparkType("struct", known) if len(known) == len(inner) else None
    if name in (exp.DType.ARRAY, exp.DType.MAP):
        parts = tuple(found for each in inner if (found := of_tree(each)) is not None)
        wanted = 1 if name == exp.DType.ARRAY else 2
        return SparkType(name.value.lower(), parts) if len(parts) == len(inner) == wanted else None
    if inner or kind.args.get("values") or kind.args.get("collate"):
        return None
    return simple(_NAMES[name]) if name in _NAMES else None


def to_tree(kind: SparkType) -> exp.DataType | None:
    """The tree of DDL that says the type; None for one that DDL has no words for."""
    if not is_small(kind) or any(each == VOID or each.name.startswith("interval") for each in kind.walk()):
        return None
    return _tree(kind)


def _tree(kind: SparkType) -> exp.DataType:
    if kind.name == "struct":
        names = (exp.to_identifier(name) for name, _ in kind.parts)
        fields = [exp.ColumnDef(this=name, kind=_tree(each)) for name, each in zip(names, kind.inner, strict=True)]
        return exp.DataType(this=exp.DType.STRUCT, expressions=fields, nested=True)
    if kind.inner:
        outer = exp.DType.ARRAY if kind.name == "array" else exp.DType.MAP
        return exp.DataType(this=outer, expressions=[_tree(each) for each in kind.inner], nested=True)
    return exp.DataType.build(str(kind), dialect="spark")


def _decimal(parameters: list[exp.Expr]) -> SparkType | None:
    numbers = [each.name for each in parameters]
    if len(numbers) > 2 or not all(each.isdigit() for each in numbers):
        return None
    precision, scale = (*map(int, numbers), *(10, 0)[len(numbers) :])
    return decimal(precision, scale) if 0 < precision <= MOST_DIGITS and scale <= precision else None


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"
