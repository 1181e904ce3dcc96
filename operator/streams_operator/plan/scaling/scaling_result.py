"""What spec.autoscaling came to in one round."""

from __future__ import annotations

from dataclasses import dataclass

from streams_operator.model import Event, LoadMemory
from streams_runtime.api.status.resource_status import AutoscalingStatus


@dataclass(frozen=True, slots=True)
class Scaling:
    """`status` is status.autoscaling. `memory`: what to remember of the load; None: nothing.

    `scaled`: another number is wanted from the next round on. `interval`: seconds until the next sample; None: none is
    awaited.
    """

    status: AutoscalingStatus
    memory: LoadMemory | None
    scaled: bool = False
    events: tuple[Event, ...] = ()
    interval: float | None = None
