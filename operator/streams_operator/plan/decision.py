"""What was decided about an application, before it is put into words."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from streams_operator.model import PodSignal
from streams_operator.plan.pods.instances import Instance
from streams_operator.plan.pods.moves import Moves
from streams_operator.plan.pods.progress import overdue
from streams_operator.plan.pods.standing import Standing
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_operator.plan.scaling.scaling_result import Scaling
from streams_operator.plan.status.past import Wait
from streams_operator.plan.status.times import seconds_of
from streams_operator.plan.topics import TopicsVerdict


class Phase(enum.Enum):
    """What is asked of the application as a whole."""

    RUN = "run"
    HOLD = "hold"  # it runs as it is
    SUSPEND = "suspend"
    DELETE = "delete"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Decision:
    """`note` says what a deletion is at. `instances` are as they will be on record: those to be made are in it."""

    phase: Phase
    context: ReconcileContext
    topics: TopicsVerdict
    instances: tuple[Instance, ...]
    moves: Moves
    note: str = ""
    signals: tuple[PodSignal, ...] = ()
    scaling: Scaling | None = None  # None: spec.autoscaling is not there, and never was

    @property
    def runs(self) -> bool:
        """Whether the application is to run, changed or as it is."""
        return self.phase in (Phase.RUN, Phase.HOLD)

    @property
    def late(self) -> tuple[Instance, ...]:
        """The instances that have not got nearer to RUNNING and restored for too long."""
        return tuple(each for each in self.instances if overdue(self.context, each.wait))

    @property
    def waits_for_topics(self) -> bool:
        """Whether pods are to be made or replaced, and are not because the internal topics are not ready."""
        context = self.context
        if self.phase is not Phase.RUN or self.topics.ready:
            return False
        wanted = [each for each in self.instances if each.ordinal < context.replicas]
        fresh = context.replicas > 0 and not any(each.pod for each in wanted)
        behind = any(each.outdated and each.standing is not Standing.LOST_IN_ERROR for each in wanted)
        return fresh or behind or any(each.standing is Standing.ABSENT for each in wanted)

    @property
    def wait_for_topics(self) -> Wait | None:
        """Since when; None: nothing waits for them."""
        if not self.waits_for_topics:
            return None
        before = self.context.past.conditions.get("InternalTopicsReady")
        since = seconds_of(before.last_transition_time) if before is not None and before.status != "True" else None
        return Wait(self.context.now if since is None else since)

    @property
    def waiting(self) -> bool:
        """Whether there is no pod, and none to be made yet."""
        return not any(each.pod or each.standing is Standing.LOST_IN_ERROR for each in self.instances) and (
            not self.instances or not self.topics.ready
        )
