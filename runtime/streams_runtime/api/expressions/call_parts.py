"""The types of calls of functions."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from streams_runtime.api.expressions.coercion import is_interval
from streams_runtime.api.expressions.functions import CASTS, RULES, cast_by, rounded
from streams_runtime.api.expressions.lambdas import LAMBDAS, Body
from streams_runtime.api.expressions.signatures import SIGNATURES, TAKES, fits
from streams_runtime.api.expressions.spark_types import (
    STRING,
    UNSURE,
    SparkType,
    array,
    simple,
    struct,
)
from streams_runtime.api.expressions.walk import Kind, Refusal, Scope, Walk
from streams_runtime.api.expressions.written_tree import span


def call(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    """A call, by the rule that there is for its name."""
    name, arguments = node.name.lower(), node.expressions
    if name in LAMBDAS and any(isinstance(each, exp.Lambda) for each in arguments):
        return _lambda(walk, node, name, scope)
    if name in ("struct", "named_struct"):
        return _struct(walk, name, arguments, scope)
    if any(isinstance(each, exp.Star | exp.Distinct | exp.Lambda | exp.Alias | exp.Kwarg) for each in arguments):
        return None
    kinds = walk.all_of(arguments, scope)
    return None if kinds is None else _called(walk, node, name, kinds)


def _called(walk: Walk, node: exp.Expr, name: str, kinds: list[SparkType]) -> Kind:
    if name in walk.own:
        return walk.own[name]
    if name in CASTS and len(kinds) == 1:
        return walk.answer(
            node,
            cast_by(name, kinds),
            f"{kinds[0].shown} can't be cast to {name.upper()}",
            "cast it to a type that it can become",
        )
    if name in SIGNATURES:
        return _signed(walk, node, name, kinds)
    if name in ("round", "bround") and len(kinds) in (1, 2):
        return _rounded(walk, node, name, kinds)
    return _ruled(walk, node, name, kinds) if name in RULES else None


def _rounded(walk: Walk, node: exp.Expr, name: str, kinds: list[SparkType]) -> Kind:
    digits: int | None = 0
    if len(kinds) == 2:
        written = node.expressions[1]
        is_number_there = isinstance(written, exp.Literal) and not written.is_string and written.name.isdigit()
        if not is_number_there:
            return None
        digits = int(written.name)
    return walk.answer(node, rounded(kinds[0], digits), f"{name} of {kinds[0].shown}", "give it a number")


def _ruled(walk: Walk, node: exp.Expr, name: str, kinds: list[SparkType]) -> Kind:
    least, most, rule = RULES[name]
    if not least <= len(kinds) <= most or any(is_interval(each) for each in kinds):
        return None
    shown = ", ".join(each.shown for each in kinds)
    return walk.answer(node, rule(kinds), f"{name} of {shown}", "give it arguments of the types that it takes")


def _signed(walk: Walk, node: exp.Expr, name: str, kinds: list[SparkType]) -> Kind:
    signature = SIGNATURES[name]
    if not signature.least <= len(kinds) <= len(signature.parameters) or any(is_interval(each) for each in kinds):
        return None
    for argument, kind, letter in zip(node.expressions, kinds, signature.parameters, strict=False):
        if not fits(letter, kind):
            at, part = span(argument, walk.text)
            wanted = TAKES[letter][0]
            walk.refusals.append(
                Refusal(at, part, f"{name} takes {wanted}, and this is {kind.shown}", f"give it {wanted}")
            )
            return None
    return array(STRING) if signature.result == "array<string>" else simple(signature.result)


def _struct(walk: Walk, name: str, arguments: Sequence[exp.Expr], scope: Scope) -> Kind:
    fields: list[tuple[str, SparkType]] = []
    if name == "named_struct":
        names, values = list(arguments[::2]), list(arguments[1::2])
        kinds = walk.all_of(values, scope)
        texts = [each.name for each in names if isinstance(each, exp.Literal) and each.is_string]
        if kinds is None or len(texts) != len(names) or len(texts) != len(kinds) or not kinds:
            return None
        return struct(*zip(texts, kinds, strict=True))
    for number, each in enumerate(arguments, 1):
        kind = walk.of(each.this if isinstance(each, exp.Alias) else each, scope)
        if kind is None or not isinstance(each, exp.Alias | exp.Column | exp.Literal):
            return None
        fields.append((f"col{number}" if isinstance(each, exp.Literal) else each.alias_or_name, kind))
    return struct(*fields) if fields else None


def _lambda(walk: Walk, node: exp.Expr, name: str, scope: Scope) -> Kind:
    lambdas = [each for each in node.expressions if isinstance(each, exp.Lambda)]
    plain = [each for each in node.expressions if not isinstance(each, exp.Lambda)]
    if list(node.expressions) != [*plain, *lambdas]:
        return None
    kinds = walk.all_of(plain, scope)

    def body(number: int, parameters: Sequence[Kind]) -> Kind:
        given = lambdas[number]
        names = [each.name.lower() for each in given.expressions]
        if len(names) > len(parameters):
            return None
        return walk.of(given.this, {**scope, **dict(zip(names, parameters, strict=False))})

    bodies: list[Body] = [lambda parameters, number=number: body(number, parameters) for number in range(len(lambdas))]  # type: ignore[misc]
    if kinds is None:
        for each in lambdas:
            walk.of(each.this, {**scope, **{name.name.lower(): None for name in each.expressions}})
        return None
    found = LAMBDAS[name](kinds, bodies)
    return None if found == UNSURE else found
