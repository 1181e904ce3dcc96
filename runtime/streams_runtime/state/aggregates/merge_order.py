"""In which order the states and records of one key are put together, for aggregates to which the order matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum


class Mark(Enum):
    """What is to be done between the rows of a sequence."""

    BEGIN = "begin"
    """Begin a new state, which what follows is added to."""
    MERGE = "merge"
    """Put the last two states together, the earlier one first."""


MergeStep = int | Mark
"""A row, whose stored state is begun with or whose records are added; or a mark."""
MergeSteps = Sequence[MergeStep]
"""They leave one state. Without marks it is one stored state or none, and then what is added to it."""


def rows_of(merge_steps: Iterable[MergeStep]) -> list[int]:
    """The rows alone, for aggregates of which any two parts can be put together."""
    return [merge_step for merge_step in merge_steps if isinstance(merge_step, int)]
