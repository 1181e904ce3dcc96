"""What was decided about an application, before it is put into words."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from streams_operator.model import Telling
from streams_operator.plan.case import Case
from streams_operator.plan.instances import Instance
from streams_operator.plan.moves import Moves
from streams_operator.plan.standing import Standing
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
    def waiting(self) -> bool:
        """Whether there is no pod, and none to be made yet."""
        return not any(each.pod or each.standing is Standing.LOST_IN_ERROR for each in self.instances) and (
            not self.instances or not self.topics.ready
        )
