"""Spark SQL, as far as made topologies use it: values of expressions over one row. null in, null out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

Env = Mapping[str, Any]


def evaluate(text: str, env: Env) -> Any:
    """The value of an expression; columns that a row lacks are null. Raises NotImplementedError for what it does not know."""
    return _value(_parsed(text), env)


def holds(text: str, env: Env) -> bool:
    """Whether a condition is true; null is not."""
    return evaluate(text, env) is True


@cache
def _parsed(text: str) -> exp.Expression:
    return sqlglot.parse_one(text, dialect="spark")


_BINARY: Mapping[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    # The remainder has the sign of the dividend.
    exp.Mod: lambda a, b: None if b == 0 else (abs(a) % abs(b)) * (1 if a >= 0 else -1),
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.GT: lambda a, b: a > b,
    exp.LT: lambda a, b: a < b,
}


def _value(tree: exp.Expression, env: Env) -> Any:
    if (binary := _BINARY.get(type(tree))) is not None:
        left, right = _value(tree.left, env), _value(tree.right, env)
        return None if left is None or right is None else binary(left, right)
    match tree:
        case exp.Paren():
            return _value(tree.this, env)
        case exp.Literal():
            return tree.this if tree.is_string else int(tree.this)
        case exp.Null():
            return None
        case exp.Column():
            return _column(tree, env)
        case exp.Coalesce():
            return next((found for each in _arguments(tree) if (found := _value(each, env)) is not None), None)
        case exp.Is():
            return _value(tree.this, env) is None
        case exp.Not():
            inner = _value(tree.this, env)
            return None if inner is None else not inner
        case exp.Cast():
            return _cast(_value(tree.this, env), tree.to.sql("spark").lower())
        case exp.Concat():
            found = [_text(_value(each, env)) for each in tree.expressions]
            return None if None in found else "".join(found)
        case exp.Array():
            return [_value(each, env) for each in tree.expressions]
        case exp.Struct():
            return json.dumps(_struct(tree, env), separators=(",", ":"))
    raise NotImplementedError(f"{tree.sql('spark')} ({type(tree).__name__})")


def _column(tree: exp.Column, env: Env) -> Any:
    if tree.table:
        other = env.get(tree.table)
        return None if other is None else other.get(tree.name)
    return env.get(tree.name)


def _arguments(tree: exp.Coalesce) -> list[exp.Expression]:
    return [tree.this, *tree.expressions]


def _struct(tree: exp.Struct, env: Env) -> dict[str, Any]:
    """A struct as Spark writes it as JSON: fields that are null are left out."""
    fields = ((each.this.name, _value(each.expression, env)) for each in tree.expressions)
    return {name: value for name, value in fields if value is not None}


def _cast(value: Any, kind: str) -> Any:
    if value is None:
        return None
    return {"string": _text, "bigint": int}[kind](value)


def _text(value: Any) -> Any:
    return None if value is None else str(value)
