"""The columns that an expression may name, with their types where these are known without running."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from sqlglot import exp

from streams_runtime.api.expressions.resolution import Resolved, resolve
from streams_runtime.api.expressions.spark_types import SparkType, of_tree, to_tree
from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.api.sql.sql_tree import Problem, parse_expression

Type = exp.DataType
_SIMPLE = {
    "string": "STRING",
    "bytes": "BINARY",
    "long": "BIGINT",
    "int": "INT",
    "double": "DOUBLE",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `type` is None where it is not known."""

    name: str
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by name; Spark takes no notice of case in names.

    `functions`: the types of what the user's own functions give, by names in small letters. `by_rules`: whether the
    types of expressions are found by Spark's rules, and not only read where they are declared.
    """

    all: tuple[Column, ...]
    functions: Mapping[str, Type] = field(default_factory=dict)
    by_rules: bool = False
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The first one of a name counts, and each expression of a select asks for several.
        object.__setattr__(self, "_by_name", {column.name.lower(): column for column in reversed(self.all)})

    def __iter__(self) -> Iterator[Column]:
        return iter(self.all)

    def get(self, name: str) -> Column | None:
        """The column of this name, in any case."""
        return self._by_name.get(name.lower())

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(column.name for column in self.all)

    def unknown(self, parts: Sequence[str]) -> Problem | None:
        """What is wrong with the reference `a.b.c`, given as its parts; None when nothing is known to be."""
        column = self.get(parts[0])
        if column is None:
            return Problem(f"unknown column {parts[0]!r}", suggestion(parts[0], self.names))
        name, current = column.name, column.type
        for part in parts[1:]:
            fields = _fields(current)
            if fields is None:
                return _not_a_struct(name, current)
            inner = Columns(fields).get(part)
            if inner is None:
                return Problem(f"{name!r} has no field {part!r}", suggestion(part, [field.name for field in fields]))
            name, current = f"{name}.{inner.name}", inner.type
        return None

    def type_of(self, text: str) -> Type | None:
        """The type of an expression; None where only Spark knows it, and where something in it is refused.

        Raises SqlSyntaxError: the text can't be read.
        """
        declared = self._declared(parse_expression(text))
        if declared is not None or not self.by_rules:
            return declared
        kind = self.resolved(text).kind
        return None if kind is None else to_tree(kind)

    def resolved(self, text: str) -> Resolved:
        """What Spark's rules say of an expression."""
        return resolve(text, self._kind, {name: of_tree(kind) for name, kind in self.functions.items()})

    def _kind(self, name: str) -> SparkType | None:
        column = self.get(name)
        return None if column is None else of_tree(column.type)

    def _declared(self, tree: exp.Expr) -> Type | None:
        """The type of a bare column, of a cast, or of a call of a user's function."""
        if isinstance(tree, exp.Paren):
            return self._declared(tree.this)
        if isinstance(tree, exp.Cast):
            return tree.to
        if isinstance(tree, exp.Anonymous):
            return self.functions.get(tree.name.lower())
        if isinstance(tree, exp.Column) and len(tree.parts) == 1:
            column = self.get(tree.name)
            return column.type if column else None
        return None


@lru_cache(256)
def type_named(ddl: str) -> Type:
    """The type of a piece of Spark DDL that is known to be right; others have it too: copy it to change it."""
    return exp.DataType.build(ddl, dialect="spark")


def primitive_type(format_name: str) -> Type | None:
    """The type of the one column of a primitive format; None for json."""
    ddl = _SIMPLE.get(format_name)
    return type_named(ddl) if ddl else None


def struct_of(columns: Columns) -> Type | None:
    """The columns as the fields of one struct; None where a type is not known."""
    fields = []
    for column in columns:
        if column.type is None:
            return None
        fields.append(exp.ColumnDef(this=exp.to_identifier(column.name, quoted=True), kind=column.type.copy()))
    return exp.DataType(this=exp.DType.STRUCT, expressions=fields, nested=True)


def key_format(kind: Type) -> str | None:
    """The format that carries a key of this type; None when none does."""
    if kind.is_type(exp.DType.STRUCT):
        return "json"
    return next((name for name, ddl in _SIMPLE.items() if shown_type(kind) == ddl), None)


def same_type(one: Type, other: Type) -> bool:
    """Whether two types are one for Spark, however they are written: DECIMAL is DECIMAL(10, 0)."""
    both = of_tree(one), of_tree(other)
    return both[0] == both[1] if None not in both else shown_type(one) == shown_type(other)


def shown_type(kind: Type) -> str:
    """The type as Spark writes it."""
    return kind.sql(dialect="spark")


def _fields(kind: Type | None) -> tuple[Column, ...] | None:
    """The fields of a struct, None for other types."""
    if kind is None or not kind.is_type(exp.DType.STRUCT):
        return None
    return tuple(
        Column(field.name, field.args.get("kind")) for field in kind.expressions if isinstance(field, exp.ColumnDef)
    )


def _not_a_struct(name: str, kind: Type | None) -> Problem | None:
    # `m.key` reads a map and `a.field` an array of structs; both need Spark to be judged.
    if kind is None or kind.is_type(exp.DType.MAP, exp.DType.ARRAY, exp.DType.VARIANT):
        return None
    return Problem(f"{name!r} is {shown_type(kind)} and has no fields", f"use {name} alone")
