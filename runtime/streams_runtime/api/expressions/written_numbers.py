"""Numbers as they are written in an expression."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite

from sqlglot import exp

from streams_runtime.api.expressions.coercion import INTEGRAL
from streams_runtime.api.expressions.spark_types import BIGINT, DOUBLE, INT, MOST_DIGITS, UNSURE, SparkType, decimal


def number_type(written: str) -> SparkType | None:
    """The type of a number as it is written."""
    digits = written.lstrip("-")
    if "e" in digits.lower():
        return DOUBLE if isfinite(float(digits)) else None
    if digits.isdigit():
        value = int(written)
        if -(2**31) <= value < 2**31:
            return INT
        if -(2**63) <= value < 2**63:
            return BIGINT
        return decimal(len(str(abs(value))), 0) if len(str(abs(value))) <= MOST_DIGITS else None
    if digits.replace(".", "", 1).isdigit():
        _, figures, exponent = Decimal(digits).as_tuple()
        scale = -int(exponent)
        significant = len("".join(map(str, figures)).lstrip("0")) or 1
        precision = max(significant, scale)
        return decimal(precision, scale) if precision <= MOST_DIGITS else None
    return None


def whole_digits(node: exp.Expr, kind: SparkType) -> int | str | None:
    """How many digits a whole number has that is written there; UNSURE where Spark may see one, None for all else."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string and kind in INTEGRAL:
        return len(str(int(node.name)))
    is_suffixed = isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and kind in INTEGRAL
    return UNSURE.name if is_suffixed else None


def is_numeric_text(text: str) -> bool:
    """Whether Spark may make a number of a text; sure is only that it makes none where this says so."""
    word = text.strip().lower().lstrip("+-")
    return word in ("nan", "inf", "infinity") or any(each.isdigit() for each in text)
