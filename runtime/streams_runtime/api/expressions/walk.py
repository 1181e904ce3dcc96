"""One pass over a tree: the columns, what was refused, and how a part asks for the types of those within it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from streams_runtime.api.expressions.spark_types import UNSURE, SparkType, is_small
from streams_runtime.api.expressions.written_tree import span

Kind = SparkType | None
Scope = Mapping[str, Kind]
"""Types by names in small letters: of a lambda's parameters, or of functions."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A part of an expression that Spark refuses: where it begins, how it is written, why, and what to do.

    `runs`: Spark's analysis takes it, and fails over every value when it runs.
    """

    at: int
    part: str
    why: str
    remedy: str
    runs: bool = False


@dataclass(slots=True)
class Walk:
    """`rules`: what finds the type of each kind of node."""

    text: str
    columns: Callable[[str], Kind]
    own: Scope
    rules: Mapping[type[exp.Expr], Rule]
    refusals: list[Refusal] = field(default_factory=list)

    def of(self, node: exp.Expr, scope: Scope) -> Kind:
        """The type of a part; None where it is not known. What is refused is noted."""
        find = self.rules.get(type(node))
        if find is not None:
            kind = find(self, node, scope)
            return kind if kind is None or not kind.parts or is_small(kind) else None
        for each in node.iter_expressions():
            if not isinstance(each, exp.DataType | exp.Identifier | exp.Lambda):
                self.of(each, scope)
        return None

    def all_of(self, nodes: Sequence[exp.Expr], scope: Scope) -> list[SparkType] | None:
        """The types of several parts; None where one is not known."""
        found = [self.of(each, scope) for each in nodes]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    def answer(self, node: exp.Expr, kind: Kind, why: str, remedy: str) -> Kind:
        """A rule's answer: the type, None for UNSURE, and a refusal noted."""
        if kind == UNSURE:
            return None
        if kind is None:
            at, part = span(node, self.text)
            self.refusals.append(Refusal(at, part, why, remedy))
        return kind

    def fails(self, node: exp.Expr, why: str, remedy: str) -> None:
        """Note what Spark fails over when it runs."""
        at, part = span(node, self.text)
        self.refusals.append(Refusal(at, part, why, remedy, runs=True))


Rule = Callable[[Walk, exp.Expr, Scope], Kind]
