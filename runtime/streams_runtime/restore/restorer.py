"""StateRestorer: one store's partition on its way from a checkpoint to the end of its changelog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore import restore_log
from streams_runtime.restore.restore_listener import NullListener, StateRestoreListener
from streams_runtime.restore.restore_start import Beginning, Log, beginning
from streams_runtime.state.store import LocalStore, Updates
from streams_runtime.topology.plan import TaskId


class StateRestorer:
    """Applies changelog records to a store and tells the user's listener.

    `source_changelog`: the changelog is a user's topic, complete up to the group's committed offset.
    """

    def __init__(self, task: TaskId, store: LocalStore, source_changelog: bool = False) -> None:
        self.task = task
        self.store = store
        self.source_changelog = source_changelog
        self._listener: StateRestoreListener = NullListener()
        self._started = False
        self.start = 0
        self.end = 0
        self.position = 0
        self.restored = 0

    @property
    def partition(self) -> TopicPartition:
        """The changelog partition."""
        return self.store.changelog

    @property
    def store_name(self) -> str:
        """The store's name in the topology."""
        return self.store.name

    @property
    def checkpoint(self) -> int | None:
        """The changelog offset that comes next, as the store has it; None when it is not known."""
        return self.store.offset()

    def set_user_restore_listener(self, listener: StateRestoreListener) -> None:
        """Tell this listener from now on."""
        self._listener = listener

    def prepare(self, log: Log, wipe: Callable[[], None]) -> Beginning:
        """Where to begin in its log; a store that can't be gone on from is emptied by `wipe` before this returns."""
        topic_id = self.store.topic_id()
        begin = beginning(self.checkpoint, log, topic_id)
        if begin.wipe is not None:
            restore_log.wiped(self.store_name, self.partition, begin.wipe)
        if begin.wipe is not None or not (begin.known or self.store.is_empty()):
            # Without a checkpoint, what a record deleted that compaction has removed since would stay for ever.
            wipe()
            topic_id = None
        if log.topic_id not in (None, topic_id):
            self.store.follow(log.topic_id)
        self.position = begin.offset
        return begin

    def restore_started(self, start: int, end: int) -> None:
        """Restoration begins at `start` and is complete at `end`."""
        self.start = self.position = start
        self.end = end
        self.restored = 0
        self._started = True
        self._listener.on_restore_start(self.partition, self.store_name, start, end)

    def apply(self, messages: Sequence[Any], next_offset: int) -> None:
        """Apply records in order: the last one of a key wins, null keys are skipped, null values delete.

        A store with a history gets all of them.
        """
        applied = [message for message in messages if message.key() is not None]
        if not self.store.keeps_versions:
            latest = {message.key(): message for message in applied}
            applied = [latest[key] for key in sorted(latest)]
        keys, values = [each.key() for each in applied], [each.value() for each in applied]
        self.store.write(Updates(keys, values, [each.timestamp()[1] for each in applied]), next_offset)
        self._advanced(len(messages), next_offset)

    def ingest(self, files: Sequence[Path], records: int, next_offset: int) -> None:
        """Take over SST files that hold `records` records of the changelog."""
        self.store.ingest(files, next_offset)
        self._advanced(records, next_offset)

    def reached(self, offset: int) -> None:
        """The changelog is applied up to `offset`, which may lie beyond its last record."""
        if offset != self.position:
            self.position = offset
            self.store.write(Updates([], [], []), offset)

    def restore_done(self) -> None:
        """The store is complete."""
        if self._started:
            self._listener.on_restore_end(self.partition, self.store_name, self.restored)

    def restore_suspended(self) -> None:
        """Restoration stops before the store is complete."""
        if self._started:
            self._started = False
            self._listener.on_restore_suspended(self.partition, self.store_name, self.restored)

    def _advanced(self, records: int, next_offset: int) -> None:
        self.position = next_offset
        self.restored += records
        self._listener.on_batch_restored(self.partition, self.store_name, next_offset, records)
