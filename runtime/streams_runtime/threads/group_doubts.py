"""What a member does not hear from its group in time, and asks about: that it has no partition, or others."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.consumer.unheard_assignment import AssignmentDoubt
from streams_runtime.kafka.types import GroupMember
from streams_runtime.tasks.standbys import StandbyTasks

_LOGGER = logging.getLogger("streams_runtime.threads")
_PATIENCE = 3.0  # seconds that a look at the group has, after which the thread goes on
_SILENCE = 1.0  # seconds without an assignment after which the group is asked, and between two questions


class GroupDoubts:
    """Of a member with one consumer."""

    def __init__(self, admin: Admin, membership: Membership, standbys: StandbyTasks | None = None) -> None:
        """`standbys`: those of the client, which know what is to move here."""
        self._admin = admin
        self._standbys = standbys
        self._membership = membership
        self._missed = AssignmentDoubt(membership.client_id)
        self._joined_at = self._asked_at = time.monotonic()

    def join(self) -> None:
        """The member joins now."""
        self._joined_at = time.monotonic()

    def has_nothing(self) -> bool:
        """Whether the group counts the member in, and has no partition for it; asked for now and then only.

        A member without partitions hears nothing. Raises BrokerNotAvailableException: ask again.
        """
        now = time.monotonic()
        if now - self._joined_at < _SILENCE or now - self._asked_at < _SILENCE:
            return False
        self._asked_at = now
        members = self._admin.group_members(self._membership.group)
        return any(each.client_id == self._membership.client_id and not each.assignment for each in members)

    def ask_for_moves(self, consumer: GroupConsumer) -> None:
        """Ask for tasks that are about to move here, which stand still from when their owner lets go of them."""
        if self._standbys is not None and self._standbys.awaits_a_move:
            consumer.hurry()

    def has_missed_a_change(self, consumer: GroupConsumer) -> bool:
        """Whether the group's answer to a heartbeat was lost and the assignment with it: then it has to join anew."""

        def members() -> Collection[GroupMember]:
            return self._admin.group_members(self._membership.group, _PATIENCE)

        try:
            return self._missed.is_justified(consumer.unheard, consumer.assigned, members)
        except StreamsException as error:
            _LOGGER.debug("%s", error)  # whoever needs the brokers says that they are away
            return False
