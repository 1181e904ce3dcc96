"""The types of parts that are values: columns, what is written there, casts and choices."""

from __future__ import annotations

from sqlglot import exp

from streams_runtime.api.expressions import operators
from streams_runtime.api.expressions.coercion import can_cast, is_interval, widest
from streams_runtime.api.expressions.spark_types import (
    BOOLEAN,
    STRING,
    UNSURE,
    VOID,
    of_tree,
    simple,
)
from streams_runtime.api.expressions.walk import Kind, Scope, Walk
from streams_runtime.api.expressions.written_numbers import number_type

_UNITS = {"DAY": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second", "MONTH": "month", "YEAR": "year"}
_ONE_TYPE = "cast one of them to the type of the other"


def literal(_walk: Walk, node: exp.Expr, _scope: Scope) -> Kind:
    return STRING if node.args.get("is_string") else number_type(node.name)


def column(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    name, *fields = (part.name for part in node.parts) if isinstance(node, exp.Column) else (node.name,)
    kind = scope[name.lower()] if name.lower() in scope else walk.columns(name)
    for each in fields:
        kind = None if kind is None else operators.field(kind, each)
        kind = None if kind == UNSURE else kind
    return kind


def dot(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    holder = walk.of(node.this, scope)
    if holder is None or not isinstance(node.expression, exp.Identifier):
        return None
    name = node.expression.name
    kind = operators.field(holder, name)
    return walk.answer(node, kind, f"{holder.shown} has no field {name!r}", "name a field that it has")


def paren(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    return walk.of(node.this, scope)


def interval(_walk: Walk, node: exp.Expr, _scope: Scope) -> Kind:
    unit = node.args.get("unit")
    number = node.this.name if isinstance(node.this, exp.Literal) else ""
    word = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    return simple(f"interval {_UNITS[word]}") if number.isdigit() and word in _UNITS else None


def cast(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    kind, to = walk.of(node.this, scope), of_tree(node.args.get("to"))
    if kind is None or to is None or is_interval(kind) or node.args.get("format"):
        return None
    found = to if can_cast(kind, to) else None
    return walk.answer(node, found, f"{kind.shown} can't be cast to {to.shown}", "cast it to a type that it can become")


def cases(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    default, branches = node.args.get("default"), node.args["ifs"]
    values = walk.all_of([*(each.args["true"] for each in branches), *([default] if default else [])], scope)
    conditions = [walk.of(each.this, scope) for each in branches]
    sure = True
    if node.this is not None:
        operand = walk.of(node.this, scope)
        for each, kind in zip(branches, conditions, strict=True):
            if operand is None or kind is None:
                sure = False
            elif operators.comparison(operand, kind) is None:
                sure = (
                    walk.answer(each.this, None, f"{operand.shown} compared with {kind.shown}", _ONE_TYPE) is not None
                )
    else:
        for each, kind in zip(branches, conditions, strict=True):
            sure = sure and kind == BOOLEAN
            if kind is not None and kind not in (BOOLEAN, VOID):
                walk.answer(each.this, None, f"when takes a condition, and this is {kind.shown}", "compare it")
    if values is None:
        return None
    found = walk.answer(
        node,
        widest(values),
        f"values of {', '.join(each.shown for each in dict.fromkeys(values))}",
        "give all branches values of one type",
    )
    return found if sure else None
