"""One condition of the resource."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from streams_runtime.api.status.status_model import StatusModel


class ConditionStatus(StatusModel):
    """One condition, of the fields that all of Kubernetes' conditions have."""

    model_config = ConfigDict(json_schema_extra={})

    type: str = Field(
        default="",
        description="Ready, InternalTopicsReady, Progressing, Degraded, Suspended, Paused, Reconciling or Stalled.",
    )
    status: str = Field(
        default="", description="Whether it holds.", json_schema_extra={"enum": ["True", "False", "Unknown"]}
    )
    reason: str = Field(default="", description="One word for why.")
    message: str = Field(default="", description="The same for people, with what to do next.")
    last_transition_time: str = Field(
        default="", description="When status last changed.", json_schema_extra={"format": "date-time"}
    )
    observed_generation: int | None = Field(default=None, description="The metadata.generation that it was found for.")
