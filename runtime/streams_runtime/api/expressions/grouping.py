"""Which operands Spark may group otherwise than sqlglot does, where no brackets say it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "is distinct from",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}
BITS: Mapping[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_RANKS: tuple[tuple[type[exp.Expr], ...], ...] = (
    (exp.Or,),
    (exp.And,),
    (exp.Not,),
    (*COMPARISONS, exp.Between, exp.In, exp.Like, exp.ILike, exp.RegexpLike, exp.Is, exp.Escape),
    (*BITS, exp.DPipe),
    (exp.Add, exp.Sub),
    (exp.Mul, exp.Div, exp.Mod, exp.IntDiv),
)
"""Operators, those that bind least first. Where Spark and sqlglot might group operands otherwise nothing is said."""


def unclear(node: exp.Expr, inner: exp.Expr | None) -> bool:
    """Whether Spark may group an operand without brackets otherwise than sqlglot does."""
    outer, rank = _rank(node), _rank(_bare(inner))
    if outer is None or rank is None:
        return False
    chains = isinstance(node, exp.Or | exp.And | exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Not)
    bits = _RANKS.index((*BITS, exp.DPipe))
    return (
        rank < outer
        or (rank == outer and not chains)
        or (outer == bits and rank > bits)
        or (rank == bits and outer < bits)
    )


def _bare(node: exp.Expr | None) -> exp.Expr | None:
    """The operand without brackets that sqlglot has added: `a is not null` it reads as `(not a is null)`."""
    return node.this if isinstance(node, exp.Paren) and "start" not in node.meta else node


def _rank(node: exp.Expr | None) -> int | None:
    return next((rank for rank, kinds in enumerate(_RANKS) if type(node) in kinds), None)
