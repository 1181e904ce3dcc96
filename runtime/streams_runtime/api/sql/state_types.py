"""The types that an aggregate's state may have where a user declares it: those that JSON holds without a loss."""

from __future__ import annotations

from sqlglot import exp

from streams_runtime.api.flow.known_columns import Type

KEPT = "numbers, STRING, BOOLEAN, BINARY, DATE, TIMESTAMP, and ARRAY and STRUCT of these"
"""The types in words; decimals are not among the numbers."""
_KEPT = (
    *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.FLOAT, exp.DType.DOUBLE),
    *(exp.DType.TEXT, exp.DType.BOOLEAN, exp.DType.BINARY, exp.DType.DATE),
    *(exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.ARRAY, exp.DType.STRUCT),
)


def not_kept(kind: Type) -> Type | None:
    """The type, or the first one within it, that is not kept; None: all are."""
    return next((each for each in kind.find_all(Type) if not each.is_type(*_KEPT)), None)
