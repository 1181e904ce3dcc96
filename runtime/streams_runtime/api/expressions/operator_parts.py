"""The types of parts that are operators over others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from streams_runtime.api.expressions import operators
from streams_runtime.api.expressions.coercion import implicit, is_interval, is_number, widest
from streams_runtime.api.expressions.grouping import BITS as _BITS
from streams_runtime.api.expressions.grouping import COMPARISONS as _COMPARISONS
from streams_runtime.api.expressions.grouping import unclear as _unclear
from streams_runtime.api.expressions.operators import Operand
from streams_runtime.api.expressions.spark_types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    UNSURE,
    VOID,
    SparkType,
    simple,
)
from streams_runtime.api.expressions.walk import Kind, Scope, Walk
from streams_runtime.api.expressions.written_numbers import is_numeric_text, number_type, whole_digits

ARITHMETIC: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
}
_ONE_TYPE = "cast one of them to the type of the other"
_WHOLE = frozenset({simple("tinyint"), simple("smallint"), INT, BIGINT})


def bracket(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    holder, index = walk.of(node.this, scope), walk.all_of(node.expressions, scope)
    if holder is None or index is None or len(index) != 1:
        return None
    written = node.expressions[0]
    if isinstance(written, exp.Literal) and written.is_string and holder.name in ("struct", "array"):
        kind = operators.field(holder, written.name)
    elif holder.name == "map":
        kind = holder.parts[1] if implicit(index[0], holder.parts[0]) else None
    else:
        kind = operators.element(holder, index[0])
    return walk.answer(
        node,
        kind,
        f"{index[0].shown} does not lead into {holder.shown}",
        "give an ARRAY a whole number, and a MAP one of its keys",
    )


def negative(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    kind = walk.of(node.this, scope)
    if kind is None or is_interval(kind):
        return None
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return number_type(f"-{node.this.name}")
    found = DOUBLE if kind in (STRING, VOID) else kind if is_number(kind) else None
    return walk.answer(node, found, f"- of {kind.shown}", "give it a number")


def flipped(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    kind = walk.of(node.this, scope)
    if kind is None or kind == VOID:
        return None
    return walk.answer(node, kind if kind in _WHOLE else None, f"~ of {kind.shown}", "give it a whole number")


def inverse(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    if _unclear(node, node.this):
        return _inside(walk, node, scope)
    kind = walk.of(node.this, scope)
    if kind is None:
        return None
    found = BOOLEAN if kind in (BOOLEAN, STRING, VOID) else None
    return walk.answer(node, found, f"not of {kind.shown}", "compare it, as in not (x > 0)")


def _inside(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    """Nothing is known of a part as a whole."""
    for each in node.iter_expressions():
        if not _unclear(node, each):
            walk.of(each, scope)
    return None


def _operands(walk: Walk, node: exp.Expr, scope: Scope) -> list[SparkType] | None:
    if _unclear(node, node.this) or _unclear(node, node.expression):
        _inside(walk, node, scope)
        return None
    return walk.all_of([node.this, node.expression], scope)


def _no_number(walk: Walk, parts: Sequence[exp.Expr], kinds: Sequence[SparkType]) -> bool:
    """Whether a text is written beside a number that no number can be made of: Spark fails over it when it runs."""
    number = next((kind for kind in kinds if is_number(kind)), None)
    if number is None:
        return False
    written = (each for each in parts if isinstance(each, exp.Literal) and each.is_string)
    wrong = next((each for each in written if not is_numeric_text(each.name)), None)
    if wrong is None:
        return False
    why = f"stands beside {number.shown}, and Spark, which makes a number of it, fails over every record"
    walk.fails(wrong, why, "write a number, or cast the other one to STRING")
    return True


def binary(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    kinds = _operands(walk, node, scope)
    if kinds is None:
        return None
    written = [whole_digits(each, kind) for each, kind in zip((node.this, node.expression), kinds, strict=True)]
    if "decimal" in (kinds[0].name, kinds[1].name) and UNSURE.name in written:
        return None
    digits = [each if isinstance(each, int) else None for each in written]
    left, right = (Operand(kind, each) for kind, each in zip(kinds, digits, strict=True))
    sign = ARITHMETIC[type(node)]
    if _no_number(walk, [node.this, node.expression], kinds):
        return None
    kind = operators.arithmetic(type(node), left, right)
    return walk.answer(
        node, kind, f"{kinds[0].shown} {sign} {kinds[1].shown}", "give it two numbers: cast(… as double)"
    )


def compared(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    kinds = _operands(walk, node, scope)
    if kinds is None:
        return None
    kind = operators.comparison(*kinds)
    sign = _COMPARISONS[type(node)]
    if _no_number(walk, [node.this, node.expression], kinds):
        return None
    return walk.answer(node, kind, f"{kinds[0].shown} {sign} {kinds[1].shown}", _ONE_TYPE)


def connected(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    kinds = _operands(walk, node, scope)
    if kinds is None:
        return None
    word = "and" if isinstance(node, exp.And) else "or"
    return walk.answer(
        node,
        operators.conjunction(kinds),
        f"{kinds[0].shown} {word} {kinds[1].shown}",
        "give it two conditions: compare what is none",
    )


def bits(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    kinds = _operands(walk, node, scope)
    if kinds is None:
        return None
    kind = operators.bits(*kinds)
    return walk.answer(node, kind, f"{kinds[0].shown} {_BITS[type(node)]} {kinds[1].shown}", "give it whole numbers")


def joined(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    kinds = _operands(walk, node, scope)
    if kinds is None:
        return None
    kind = operators.concatenation(kinds)
    return walk.answer(node, kind, f"{kinds[0].shown} || {kinds[1].shown}", "give it texts, or arrays of one type")


def between(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    parts = [node.this, node.args["low"], node.args["high"]]
    if any(_unclear(node, each) for each in parts):
        return _inside(walk, node, scope)
    kinds = walk.all_of(parts, scope)
    if kinds is None or node.args.get("symmetric"):
        return None
    # Spark does not look at the upper bound where the lower one says no.
    if _no_number(walk, parts[:2], kinds[:2]):
        return None
    wrong = next((each for each in kinds[1:] if operators.comparison(kinds[0], each) is None), None)
    found = BOOLEAN if wrong is None else None
    why = "" if wrong is None else f"{kinds[0].shown} compared with {wrong.shown}"
    return walk.answer(node, found, why, _ONE_TYPE)


def among(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    parts = [node.this, *node.expressions]
    if not node.expressions or any(_unclear(node, each) for each in parts):
        return _inside(walk, node, scope)
    kinds = walk.all_of(parts, scope)
    if kinds is None:
        return None
    common = widest(kinds)
    # Spark looks no further in the list once a value is the one.
    if common is not None and is_number(common) and _no_number(walk, parts[:2], kinds[:2]):
        return None
    found = common if common in (None, UNSURE) else operators.comparison(common, common)
    return walk.answer(
        node,
        found,
        f"in of {', '.join(each.shown for each in dict.fromkeys(kinds))}",
        "give the list values of the type that it is looked for in",
    )


def like(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    kinds = _operands(walk, node, scope)
    if kinds is None:
        return None
    found = BOOLEAN if all(implicit(each, STRING) for each in kinds) else None
    return walk.answer(node, found, f"{kinds[0].shown} like {kinds[1].shown}", "give it texts")


def tested(walk: Walk, node: exp.Expr, scope: Scope) -> Kind:
    if _unclear(node, node.this):
        return _inside(walk, node, scope)
    kind = walk.of(node.this, scope)
    if isinstance(node.expression, exp.Null):
        return None if kind is None else BOOLEAN
    if kind is None or not isinstance(node.expression, exp.Boolean):
        return None
    found = BOOLEAN if kind in (BOOLEAN, STRING, VOID) else None
    return walk.answer(node, found, f"is true or is false of {kind.shown}", "compare it")
