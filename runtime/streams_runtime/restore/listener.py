"""What a user hears of restoration and of standbys: the listeners, as Kafka Streams has them."""

from __future__ import annotations

import enum
from typing import Protocol

from streams_runtime.kafka.types import TopicPartition


class StateRestoreListener(Protocol):
    """Called on the restoration thread; must not block for long. Offsets are offsets of the changelog partition."""

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        """A store starts to be restored from `start` (its first record) up to `end` (exclusive)."""

    def on_batch_restored(self, partition: TopicPartition, store: str, batch_end: int, records: int) -> None:
        """`records` more records were applied; `batch_end` comes next."""

    def on_restore_end(self, partition: TopicPartition, store: str, total: int) -> None:
        """The store is complete after `total` records."""

    def on_restore_suspended(self, partition: TopicPartition, store: str, total: int) -> None:
        """Restoration stops after `total` records, before the store was complete.

        The task left this instance, or the store has to be restored from its beginning, which starts anew then.
        """


class SuspendReason(enum.StrEnum):
    """Why a standby is no longer kept up to date here."""

    PROMOTED = "PROMOTED"  # its task became active on this instance
    MIGRATED = "MIGRATED"  # another instance keeps it, or the client closes


class StandbyUpdateListener(Protocol):
    """Called on the standbys' thread; must not block for long (KIP-988)."""

    def on_update_start(self, partition: TopicPartition, store: str, start: int) -> None:
        """A standby store starts to follow its changelog, from `start`."""

    def on_batch_loaded(
        self, partition: TopicPartition, store: str, task: str, batch_end: int, records: int, end: int
    ) -> None:
        """`records` more records of the task's store were applied; `batch_end` comes next, `end` is the changelog's."""

    def on_update_suspended(
        self, partition: TopicPartition, store: str, position: int, end: int, reason: SuspendReason
    ) -> None:
        """The standby store is closed here; it has the changelog, which ends at `end`, up to `position`."""


class NullListener:
    """Hears everything and does nothing."""

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None: ...

    def on_batch_restored(self, partition: TopicPartition, store: str, batch_end: int, records: int) -> None: ...

    def on_restore_end(self, partition: TopicPartition, store: str, total: int) -> None: ...

    def on_restore_suspended(self, partition: TopicPartition, store: str, total: int) -> None: ...

    def on_update_start(self, partition: TopicPartition, store: str, start: int) -> None: ...

    def on_batch_loaded(
        self, partition: TopicPartition, store: str, task: str, batch_end: int, records: int, end: int
    ) -> None: ...

    def on_update_suspended(
        self, partition: TopicPartition, store: str, position: int, end: int, reason: SuspendReason
    ) -> None: ...
