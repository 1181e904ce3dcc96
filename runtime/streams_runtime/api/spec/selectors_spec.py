"""Selectors of labels, as Kubernetes has them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import LabelValue


class LabelExpression(Model):
    """One condition on a label."""

    key: str = Field(description="Key of the label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(description="What is asked of the label.")
    values: list[LabelValue] = Field(default_factory=list, description="Of In and NotIn: the values.")


class LabelSelectorSpec(Model):
    """Objects by their labels; nothing given: all of them."""

    match_labels: dict[str, LabelValue] = Field(default_factory=dict, description="Labels that an object must have.")
    match_expressions: list[LabelExpression] = Field(
        default_factory=list, description="Conditions that all have to hold."
    )
