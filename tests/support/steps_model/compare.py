"""Values as a model and a run have them: equal, but for what no number has exactly."""

from __future__ import annotations

import math
from typing import Any

PERCENTILE = "p"
"""The column that is only known to 1 %."""


def alike(one: Any, other: Any, column: str = "") -> bool:
    """Equal, but for the last digits of numbers that are none exactly."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name], name) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(alike(*each, column) for each in zip(one, other, strict=True))
    if isinstance(one, float) or isinstance(other, float):
        return None not in (one, other) and math.isclose(
            one, other, rel_tol=0.0101 if column == PERCENTILE else 1e-9, abs_tol=1e-9
        )
    return bool(one == other)


def without_nulls(value: Any) -> Any:
    """A row without its nulls: what a table's source has not said is null."""
    return {name: each for name, each in value.items() if each is not None} if isinstance(value, dict) else value
