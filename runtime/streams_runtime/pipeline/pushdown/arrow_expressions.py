"""Spark's expressions as Arrow's, as far as both are sure to give the same."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.pipeline.pushdown.catalyst import Tree

_TYPES: Mapping[str, pa.DataType] = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
}
_UNKNOWN = pa.null()
"""The type of a column that is only handed on, or asked whether it is there."""
# Numbers that never are NaN, which Spark takes for equal to itself and greater than all: JSON has none.
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "EqualTo": operator.eq,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
}
_LOGIC: Mapping[str, Callable[..., Any]] = {
    "And": operator.and_,
    "Or": operator.or_,
    "Not": operator.invert,
    "IsNull": pc.Expression.is_null,
    "IsNotNull": pc.Expression.is_valid,
}
_WIDER = frozenset(
    {(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.int64(), pa.float64())}  # as Java does it
)


class NotTakenOver(Exception):
    """Something that is left to Spark."""


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression of Arrow's, its type, and the columns that it reads."""

    expression: pc.Expression
    type: pa.DataType
    reads: frozenset[str] = frozenset()
    constant: object = None
    """The value, where it is one and the same for all rows."""


Names = Mapping[int, Typed]
"""What Spark's attributes are, by their ids."""


def attributes(leaf: Tree) -> dict[int, Typed]:
    """What the columns are that a plan begins with."""
    found = {}
    for (node,) in leaf.fields["output"]:
        name = node["name"]
        found[id_of(node)] = Typed(pc.field(name), _type_of(node["dataType"]), frozenset({name}))
    return found


def _type_of(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        return _TYPES.get(kind, _UNKNOWN)
    if kind["type"] == "struct":
        return pa.struct([(field["name"], _type_of(field["type"])) for field in kind["fields"]])
    return _UNKNOWN


def id_of(fields: Mapping[str, Any]) -> int:
    """The id of an attribute or an alias."""
    return int(fields["exprId"]["id"])


def translated(tree: Tree, names: Names) -> Typed:
    """The same in Arrow. Raises NotTakenOver: it can't be said, or not so that it is sure to be the same."""
    match tree.kind:
        case "AttributeReference":
            return _named(tree, names)
        case "Literal":
            return _literal(tree)
        case "Cast":
            return _cast(tree, translated(tree.children[0], names))
        case "GetStructField":
            return _member(translated(tree.children[0], names), int(tree.fields["ordinal"]))
    parts = [translated(child, names) for child in tree.children]
    made, kind = _made(tree.kind, parts)
    return Typed(made, kind, frozenset[str]().union(*(part.reads for part in parts)))


def _made(kind: str, parts: list[Typed]) -> tuple[pc.Expression, pa.DataType]:
    """An expression of these, and its type."""
    if kind in _LOGIC:
        return _LOGIC[kind](*(part.expression for part in parts)), pa.bool_()
    if kind in _COMPARED:
        return _COMPARED[kind](*_alike(parts)), pa.bool_()
    match kind:
        case "EqualNullSafe":
            one, other = _alike(parts)
            return pc.coalesce(one == other, one.is_null() & other.is_null()), pa.bool_()
        case "In":
            # Not is_in, which finds that null is in no list, where SQL does not know.
            value, *listed = _alike(parts)
            return reduce(operator.or_, (value == each for each in listed)), pa.bool_()
        case "Coalesce":
            return pc.coalesce(*_alike(parts)), parts[0].type
        case _:
            raise NotTakenOver(kind)


def _named(tree: Tree, names: Names) -> Typed:
    found = names.get(id_of(tree.fields))
    if found is None:
        raise NotTakenOver(tree.fields["name"])
    return found


def _literal(tree: Tree) -> Typed:
    kind, text = tree.fields["dataType"], tree.fields["value"]
    if not isinstance(kind, str) or kind not in _TYPES or text is None:
        raise NotTakenOver(f"a literal of type {kind}")
    value = _value(kind, text)
    return Typed(pc.scalar(pa.scalar(value, _TYPES[kind])), _TYPES[kind], constant=value)


def _value(kind: str, text: str) -> object:
    match kind:
        case "long" | "integer":
            return int(text)
        case "double":
            return float(text)
        case "boolean":
            return text == "true"
        case _:
            return text


def _member(value: Typed, number: int) -> Typed:
    if not pa.types.is_struct(value.type):
        raise NotTakenOver(f"a member of {value.type}")
    return Typed(pc.struct_field(value.expression, [number]), value.type.field(number).type, value.reads)


def _alike(parts: list[Typed]) -> list[pc.Expression]:
    if len({part.type for part in parts}) > 1 or parts[0].type not in _TYPES.values():
        raise NotTakenOver("operands of several types, or of one that is compared otherwise here")
    return [part.expression for part in parts]


def _cast(tree: Tree, value: Typed) -> Typed:
    kind = tree.fields["dataType"]
    target = _TYPES.get(kind) if isinstance(kind, str) else None
    if target is None or (value.type != target and (value.type, target) not in _WIDER):
        raise NotTakenOver(f"a cast to {kind}")
    return Typed(value.expression.cast(target, safe=False), target, value.reads)
