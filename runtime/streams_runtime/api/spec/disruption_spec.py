"""The part of the resource that says how many pods may be taken away at a time."""

from __future__ import annotations

from pydantic import Field

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import CountOrPercent


class DisruptionBudgetSpec(Model):
    """How many pods those may take away who drain nodes, by Kubernetes' PodDisruptionBudget."""

    enabled: bool = Field(default=True, description="false: no budget, so that another one can count.")
    max_unavailable: CountOrPercent | None = Field(
        default=None,
        description="How many pods may be away at a time, or what part of them, such as 25%. Pods that are not ready"
        " may always be taken away. Absent: 1.",
    )
