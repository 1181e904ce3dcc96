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
    """The value of an expression; columns that a row lacks are null.

    Raises NotImplementedError for what the model does not know.
    """
    return _value(_parsed(text), env)


def selected(select: Mapping[str, str], env: Env, value: Mapping[str, Any]) -> dict[str, Any]:
    """What a select makes of a value: the named columns, and behind a star the others as they are."""
    named = {name: evaluate(text, env) for name, text in select.items() if name != "*"}
    return {**(value if "*" in select else {}), **named}


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
    if (other := _OTHERS.get(type(tree))) is None:
        raise NotImplementedError(f"{tree.sql('spark')} ({type(tree).__name__})")
    return other(tree, env)


def _column(tree: exp.Column, env: Env) -> Any:
    if tree.table:
        other = env.get(tree.table)
        return None if other is None else other.get(tree.name)
    return env.get(tree.name)


def _coalesced(tree: exp.Expression, env: Env) -> Any:
    values = (_value(each, env) for each in (tree.this, *tree.expressions))
    return next((value for value in values if value is not None), None)


def _concatenated(tree: exp.Expression, env: Env) -> Any:
    texts = [_text(_value(each, env)) for each in tree.expressions]
    return None if None in texts else "".join(texts)


def _struct(tree: exp.Expression, env: Env) -> str:
    """A struct as its JSON, which is what keys are known by."""
    fields = {each.this.name: _value(each.expression, env) for each in tree.expressions}
    return json.dumps(fields, separators=(",", ":"))


def _cast(tree: exp.Expression, env: Env) -> Any:
    value = _value(tree.this, env)
    return None if value is None else {"string": _text, "bigint": int}[tree.args["to"].sql("spark").lower()](value)


def _text(value: Any) -> Any:
    return None if value is None else str(value)


_OTHERS: Mapping[type[exp.Expression], Callable[[Any, Env], Any]] = {
    exp.Paren: lambda tree, env: _value(tree.this, env),
    exp.Literal: lambda tree, _: tree.this if tree.is_string else int(tree.this),
    exp.Column: _column,
    exp.Coalesce: _coalesced,
    exp.Concat: _concatenated,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Array: lambda tree, env: [_value(each, env) for each in tree.expressions],
    exp.Struct: _struct,
}
