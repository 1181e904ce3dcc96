"""Noticing that a member has not heard what the group assigns it.

A coordinator tells a member of a change of its assignment once, in the answer to a heartbeat, and again only when a
heartbeat says all about the member. librdkafka waits for an answer as long as the interval of heartbeats, and sends the
same heartbeat again: what the answer said is lost then. The group goes on to count a partition as this member's, who
does not read it; or waits five minutes (`max.poll.interval.ms`) for one that the member should give back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from streams_runtime.kafka.client.librdkafka_errors import QuietLog
from streams_runtime.kafka.types import GroupMember, TopicPartition

# Seconds between two looks at the group. Brokers allow no longer interval of heartbeats than 15 s
# (`group.consumer.max.heartbeat.interval.ms`), so a change that is under way has been heard by then.
_APART = 16.0

# "REQTMOUT [client] [thrd:…]: GroupCoordinator/1: Timed out ConsumerGroupHeartbeatRequest in flight (after 5002ms, …)"
_UNHEARD = "Timed out ConsumerGroupHeartbeatRequest in flight"


class HeartbeatLog(QuietLog):
    """Counts what librdkafka says of heartbeats whose answer did not come in time."""

    def __init__(self) -> None:
        self.unheard = 0

    def log(self, level: int, message: str, *args: object) -> None:
        """Called by librdkafka's binding, with facility, client and text."""
        if args and _UNHEARD in str(args[-1]):
            self.unheard += 1
        super().log(level, message, *args)


_Partitions = frozenset[TopicPartition]
_Difference = tuple[_Partitions, _Partitions, _Partitions]


class AssignmentDoubt:
    """Call `is_justified` often: it asks when an answer was lost, until the group and the member agree."""

    def __init__(self, client_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`client_id` is the member's."""
        self._client_id = client_id
        self._clock = clock
        self._settled = 0
        self._next = float("-inf")
        self._differed: _Difference | None = None

    def is_justified(
        self, unheard: int, has: frozenset[TopicPartition], members: Callable[[], Collection[GroupMember]]
    ) -> bool:
        """Whether the member has missed a change for good, and has to join anew.

        `unheard`: how many answers to heartbeats were lost so far. `has`: what the member has been assigned. `members`
        gives those of the group; what it raises is raised, and it is called again at the next look.
        """
        if unheard == self._settled or self._clock() < self._next:
            return False
        self._next = self._clock() + _APART
        counted = [each for each in members() if each.client_id == self._client_id]
        differs = _difference(has, counted[0]) if counted else None  # whom the group has put out is told so
        if counted and differs is None:
            self._settled, self._differed = unheard, None
            return False
        if differs is None or differs != self._differed:
            self._differed = differs
            return False
        return True


def _difference(has: frozenset[TopicPartition], counted: GroupMember) -> _Difference | None:
    """What the member has and the group counts as its; None: they agree.

    Brokers from 4.4 on count a partition as the member's until it gives it back: then the group's target lacks it. One
    that the target has beside is still another member's.
    """
    assigned = frozenset(counted.assignment)
    stays = assigned if counted.target is None else assigned & frozenset(counted.target)
    return None if has == assigned == stays else (has, assigned, stays)
