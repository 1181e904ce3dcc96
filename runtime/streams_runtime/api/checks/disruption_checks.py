"""Checks of `spec.disruptionBudget`."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.spec.disruption_spec import DisruptionBudgetSpec
from streams_runtime.errors import Mistake


def disruption_mistakes(budget: DisruptionBudgetSpec) -> Iterator[Mistake]:
    """What a budget says that it can't mean."""
    if not budget.enabled and budget.max_unavailable is not None:
        found = "is given beside enabled: false, and there is no budget to tell it"
        yield Mistake("spec.disruptionBudget.maxUnavailable", found, "leave it out, or set enabled to true")
