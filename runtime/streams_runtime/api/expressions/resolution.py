"""The type of an expression over columns, and what Spark's analysis would refuse of it.

What is refused here Spark refuses, and what has a type here has this type in Spark; of all else only Spark knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from streams_runtime.api.expressions import call_parts as calls
from streams_runtime.api.expressions import operator_parts as operators
from streams_runtime.api.expressions import value_parts as values
from streams_runtime.api.expressions.grouping import BITS, COMPARISONS
from streams_runtime.api.expressions.spark_types import BINARY, BOOLEAN, DATE, TIMESTAMP, VOID, SparkType
from streams_runtime.api.expressions.walk import Kind, Refusal, Rule, Scope, Walk
from streams_runtime.api.expressions.written_tree import written_tree


@dataclass(frozen=True, slots=True)
class Resolved:
    """`kind` is None where the type is not known, and where something is refused."""

    kind: SparkType | None
    refusals: tuple[Refusal, ...]


def resolve(text: str, columns: Callable[[str], Kind], own: Scope) -> Resolved:
    """The type of an expression over columns.

    `columns` gives the type of a column by its name. `own`: the results of the user's functions, by names in small
    letters.
    """
    tree = written_tree(text)
    if tree is None:
        return Resolved(None, ())
    walk = Walk(text, columns, own, _PARTS)
    try:
        kind = walk.of(tree, {})
    except RecursionError:  # a thousand operators in a row: only Spark goes so deep
        return Resolved(None, ())
    return Resolved(None if walk.refusals else kind, tuple(walk.refusals))


_PARTS: Mapping[type[exp.Expr], Rule] = {
    exp.Literal: values.literal,
    exp.Boolean: lambda *_: BOOLEAN,
    exp.Null: lambda *_: VOID,
    exp.HexString: lambda *_: BINARY,
    exp.Column: values.column,
    exp.Identifier: values.column,
    exp.Dot: values.dot,
    exp.Paren: values.paren,
    exp.Bracket: operators.bracket,
    exp.Neg: operators.negative,
    exp.BitwiseNot: operators.flipped,
    exp.Not: operators.inverse,
    **dict.fromkeys(operators.ARITHMETIC, operators.binary),
    **dict.fromkeys(COMPARISONS, operators.compared),
    **dict.fromkeys((exp.And, exp.Or), operators.connected),
    **dict.fromkeys(BITS, operators.bits),
    exp.DPipe: operators.joined,
    exp.Between: operators.between,
    exp.In: operators.among,
    **dict.fromkeys((exp.Like, exp.ILike, exp.RegexpLike), operators.like),
    exp.Is: operators.tested,
    **dict.fromkeys((exp.Cast, exp.TryCast), values.cast),
    exp.Case: values.cases,
    exp.Interval: values.interval,
    exp.Anonymous: calls.call,
    exp.CurrentDate: lambda *_: DATE,
    exp.CurrentTimestamp: lambda *_: TIMESTAMP,
}
