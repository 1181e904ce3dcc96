"""What a user hears of restoration and of standbys: the listeners, as Kafka Streams has them."""

from __future__ import annotations

import enum
from typing import Protocol

from streams_runtime.kafka.types import TopicPartition


class StateRestoreListener(Protocol):
    """Hears how stores are restored (Kafka Streams' StateRestoreListener; pass it to StreamsClient).

    `partition` is the changelog's, and offsets are offsets in it. Calls come from a restoration thread, or for a global
    table from the global thread, and must not block for long. An exception that a method raises ends the stream thread
    whose tasks are restored, as any exception does, or the client where the global thread raised it.
    """

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        """Restoration of a store begins at the offset `start` and is complete at `end` (exclusive)."""

    def on_batch_restored(self, partition: TopicPartition, store: str, batch_end: int, records: int) -> None:
        """The store has taken in `records` more records of its changelog; the offset `batch_end` comes next."""

    def on_restore_end(self, partition: TopicPartition, store: str, total: int) -> None:
        """The store is complete, after `total` records in all; queries and its task can use it."""

    def on_restore_suspended(self, partition: TopicPartition, store: str, total: int) -> None:
        """Restoration stops after `total` records, before the store is complete (KIP-869).

        The task left this instance, or the store has to be restored from its beginning: `on_restore_start` follows
        then.
        """


class SuspendReason(enum.StrEnum):
    """Why a standby is no longer kept up to date here."""

    PROMOTED = "PROMOTED"  # its task became active on this instance
    MIGRATED = "MIGRATED"  # another instance keeps it, or the client closes


class StandbyUpdateListener(Protocol):
    """Hears how standby stores follow their changelogs (StandbyUpdateListener, KIP-988; pass it to StreamsClient).

    `partition` is the changelog's, and offsets are offsets in it. Calls come from the standbys' thread and must not
    block for long. After an exception that a method raises all standbys of the instance are closed, and opened again 30
    s later; active tasks go on.
    """

    def on_update_start(self, partition: TopicPartition, store: str, start: int) -> None:
        """A standby store begins to follow its changelog, at the offset `start`."""

    def on_batch_loaded(
        self, partition: TopicPartition, store: str, task: str, batch_end: int, records: int, end: int
    ) -> None:
        """The store of `task` (`0_3`) has taken in `records` more records; the offset `batch_end` comes next.

        `end` is where the changelog ends, as far as the consumer knows.
        """

    def on_update_suspended(
        self, partition: TopicPartition, store: str, position: int, end: int, reason: SuspendReason
    ) -> None:
        """The standby store closes here with its changelog up to `position`, of `end`; `reason` says why."""


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
