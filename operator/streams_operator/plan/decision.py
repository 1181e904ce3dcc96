"""What was decided about an application, before it is put into words."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from streams_operator.model import Telling
from streams_operator.plan.case import Case
from streams_operator.plan.instances import Instance
from streams_operator.plan.moves import Moves
from streams_operator.plan.past import Wait
from streams_operator.plan.progress import overdue
from streams_operator.plan.standing import Standing
from streams_operator.plan.times import seconds_of
from streams_operator.plan.topics import TopicsVerdict


class Phase(enum.Enum):
    """What is asked of the application as a whole."""

    RUN = "run"
    SUSPEND = "suspend"
    DELETE = "delete"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Decision:
    """`note` says what a deletion is at. `instances` are as they will be on record: those to be made are in it."""

    phase: Phase
    case: Case
    topics: TopicsVerdict
    instances: tuple[Instance, ...]
    moves: Moves
    note: str = ""
    tell: tuple[Telling, ...] = ()

    @property
    def late(self) -> tuple[Instance, ...]:
        """The instances that have not got nearer to RUNNING and restored for too long."""
        return tuple(each for each in self.instances if overdue(self.case, each.wait))

    @property
    def waits_for_topics(self) -> bool:
        """Whether pods are to be made or replaced, and are not because the internal topics are not ready."""
        case = self.case
        if self.phase is not Phase.RUN or self.topics.ready:
            return False
        wanted = [each for each in self.instances if each.ordinal < case.replicas]
        fresh = case.replicas > 0 and not any(each.pod for each in wanted)
        behind = any(each.outdated and each.standing is not Standing.LOST_IN_ERROR for each in wanted)
        return fresh or behind or any(each.standing is Standing.ABSENT for each in wanted)

    @property
    def wait_for_topics(self) -> Wait | None:
        """Since when; None: nothing waits for them."""
        if not self.waits_for_topics:
            return None
        before = self.case.past.conditions.get("InternalTopicsReady", {})
        since = seconds_of(before.get("lastTransitionTime")) if before.get("status") != "True" else None
        return Wait(self.case.now if since is None else since)

    @property
    def waiting(self) -> bool:
        """Whether there is no pod, and none to be made yet."""
        return not any(each.pod or each.standing is Standing.LOST_IN_ERROR for each in self.instances) and (
            not self.instances or not self.topics.ready
        )
