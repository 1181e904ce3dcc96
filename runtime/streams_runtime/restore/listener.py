"""What a user hears of restoration: StateRestoreListener, as Kafka Streams has it."""

from __future__ import annotations

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
        """The task left this instance after `total` records, before the store was complete."""


class NullListener:
    """Hears everything and does nothing."""

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None: ...

    def on_batch_restored(self, partition: TopicPartition, store: str, batch_end: int, records: int) -> None: ...

    def on_restore_end(self, partition: TopicPartition, store: str, total: int) -> None: ...

    def on_restore_suspended(self, partition: TopicPartition, store: str, total: int) -> None: ...
