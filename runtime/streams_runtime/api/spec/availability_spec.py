"""The parts of the resource that say what the operator does about pods that are lost or do not arrive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration, format_duration, refusal

PROGRESS_DEADLINE = timedelta(minutes=10)  # as Deployment's


def _at_least(least: timedelta) -> Callable[[timedelta], timedelta]:
    def checked(value: timedelta) -> timedelta:
        if value < least:
            raise refusal(f"found {format_duration(value)}", f"give at least {format_duration(least)}")
        return value

    return checked


ProgressDeadline = Annotated[Duration, AfterValidator(_at_least(timedelta(seconds=10)))]
"""A shorter one would be over before any pod can have started."""


class NodeLossSpec(Model):
    """What becomes of pods whose node does not confirm that they have ended."""

    # A kubelet under load needs some time to confirm an end.
    force_delete_after: Annotated[Duration, AfterValidator(_at_least(timedelta(minutes=1)))] | None = Field(
        default=None,
        description="How long after its grace period a pod that is deleted and still there is deleted by force and made"
        " again elsewhere, at least 1m. A client that runs on there all the same is fenced by the new one: nothing is"
        " doubled under exactly_once_v2. Absent: never; Degraded names the pod and its node.",
    )
