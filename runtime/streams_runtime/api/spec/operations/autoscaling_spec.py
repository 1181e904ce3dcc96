"""The part of the resource that lets the operator choose the number of instances."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration, between, format_duration

_LEAST, _MOST = timedelta(seconds=10), timedelta(days=1)
_TARGET, _STABILIZATION = timedelta(minutes=2), timedelta(minutes=5)

# Lag is read every few seconds, and the operator remembers a day at most.
ScalingTime = Annotated[Duration, AfterValidator(between(_LEAST, _MOST))]
"""A length of time that a decision about the number of instances can rest on."""


class AutoscalingSpec(Model):
    """How many instances the operator may choose from, and what for."""

    min_replicas: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Fewest instances. At least 1, since it is the instances that report the lag.",
    )
    max_replicas: int = Field(
        ge=1,
        le=10_000,
        description="Most instances. There are never more than tasks, whatever this says.",
    )
    target_catch_up: ScalingTime = Field(
        default=_TARGET,
        description="How soon a backlog is to be processed, 10s to 1d.",
        json_schema_extra={"default": format_duration(_TARGET)},
    )
    stabilization: ScalingTime = Field(
        default=_STABILIZATION,
        description="How long fewer instances have to be enough before one is taken away, 10s to 1d.",
        json_schema_extra={"default": format_duration(_STABILIZATION)},
    )
