"""StoreChangelogReader: restores stores from their changelog partitions, many at a time, in batches."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from streams_runtime.kafka.changelog_consumer import ChangelogConsumer, InvalidOffsetException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.bulk import BulkLoader
from streams_runtime.restore.listener import StateRestoreListener
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.topology.plan import TaskId

TRACE = 5
logging.addLevelName(TRACE, "TRACE")
_LOGGER = logging.getLogger("streams_runtime.restore")
_BATCH_RECORDS = 20_000
_BULK_RECORDS = 100_000  # from this many on, starting worker processes pays


class RestoringTask(Protocol):
    """A task whose stores are being restored."""

    @property
    def id(self) -> TaskId: ...

    def reinitialize_state_stores_for_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Wipe the stores of these changelog partitions."""


RestoringTasks = Mapping[TopicPartition, RestoringTask]


class Offsets(Protocol):
    """Answers where partitions begin and end, and what a group has committed (kafka.admin.Admin)."""

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]: ...

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...


class StoreChangelogReader:
    """Kafka Streams' ChangelogReader: a registry of restorers, and what is still to initialize and to restore.

    Not thread-safe: the state updater's thread owns it. `poll_seconds` is the setting poll.ms, the longest wait of
    one `restore` for records.
    """

    def __init__(
        self,
        consumer: ChangelogConsumer,
        offsets: Offsets,
        group: str,
        listener: StateRestoreListener,
        bulk: BulkLoader | None = None,
        poll_seconds: float = 0.1,
    ) -> None:
        self._consumer = consumer
        self._offsets = offsets
        self._group = group
        self._listener = listener
        self._bulk = bulk
        self._poll_seconds = poll_seconds
        self._restorers: dict[TopicPartition, StateRestorer] = {}
        self._needs_initializing: set[TopicPartition] = set()
        self._needs_restoring: set[TopicPartition] = set()
        self._loading: set[TopicPartition] = set()  # those of needs_restoring that the bulk loader has

    def register(self, restorer: StateRestorer) -> None:
        """Restore this store with the next calls of `restore`."""
        restorer.set_user_restore_listener(self._listener)
        self._restorers[restorer.partition] = restorer
        _LOGGER.log(TRACE, "Added restorer for changelog %s", restorer.partition)
        self._needs_initializing.add(restorer.partition)

    def unregister(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget these partitions; those that are not complete are suspended."""
        for partition in list(partitions):
            restorer = self._restorers.pop(partition, None)
            if restorer is None:
                continue
            if partition in self._loading:
                self._loading.discard(partition)
                if self._bulk is not None:
                    self._bulk.cancel(partition)
            elif partition in self._needs_restoring:
                self._consumer.remove([partition])
            if partition in self._needs_restoring:
                restorer.restore_suspended()
            self._needs_restoring.discard(partition)
            self._needs_initializing.discard(partition)

    def clear(self) -> None:
        """Forget everything."""
        self.unregister(list(self._restorers))
        self._consumer.unsubscribe()

    @property
    def busy(self) -> bool:
        """Whether anything is still to be initialized or restored."""
        return bool(self._needs_initializing or self._needs_restoring)

    @property
    def loading(self) -> bool:
        """Whether the bulk loader is at work, or may be as soon as what is new is initialized."""
        return bool(self._needs_initializing or self._loading)

    def restored_offsets(self) -> dict[TopicPartition, int]:
        """Where each persistent store has got to."""
        return {each: it.restored_offset for each, it in self._restorers.items() if it.persistent}

    def restore(self, tasks: RestoringTasks) -> set[TopicPartition]:
        """One round: initialize what is new, apply what comes within poll.ms; returns what is complete now.

        Raises:
            BrokerNotAvailableException: nothing is lost; call again.
            ProcessorStateException: a store can't be written; its offset and data agree.
        """
        completed: set[TopicPartition] = set()
        if self._needs_initializing:
            completed |= self._initialize(tasks)
        if not self._needs_restoring:
            self._consumer.unsubscribe()
            return completed
        self._take_over_loaded()
        if self._needs_restoring - self._loading:
            try:
                records = self._consumer.poll(_BATCH_RECORDS, self._poll_seconds)
            except InvalidOffsetException as invalid:
                self._start_again(invalid.partition, tasks)
                return completed
            for partition, messages in records.items():
                self._process_next(messages, self._restorers[partition])
            completed |= self._complete()
        elif self._bulk is not None:
            self._bulk.wait(self._poll_seconds)
        if not self._needs_restoring:
            self._consumer.unsubscribe()
        return completed

    def _initialize(self, tasks: RestoringTasks) -> set[TopicPartition]:
        """Find each new partition's end; those that are there already, or have no topic, are complete at once."""
        new = {each: self._restorers[each] for each in self._needs_initializing}
        starts = self._offsets.start_offsets(new)
        ends = self._offsets.end_offsets(new)
        limits = dict(ends)
        sources = [each for each, restorer in new.items() if restorer.source_changelog]
        if sources:
            committed = self._offsets.committed_offsets(self._group, sources)
            limits |= {each: min(committed.get(each, 0), ends.get(each, 0)) for each in sources}
        self._needs_initializing.clear()
        completed = set()
        to_start: dict[TopicPartition, int] = {}
        for partition, restorer in new.items():
            checkpoint = restorer.checkpoint
            if checkpoint is not None and partition in ends and checkpoint > ends[partition]:
                _LOGGER.warning(
                    "The changelog %s ends at %d, before the checkpoint %d of store %s: it was truncated or made anew."
                    " The store is wiped and restored from the beginning",
                    partition,
                    ends[partition],
                    checkpoint,
                    restorer.store_name,
                )
                self._wipe(partition, tasks)
            elif checkpoint is not None and checkpoint < starts.get(partition, 0):
                # The records after the checkpoint are gone from the log; what they deleted would stay for ever.
                self._wipe(partition, tasks)
            begin = max(restorer.checkpoint or 0, starts.get(partition, 0))
            if partition not in limits or begin >= limits[partition]:
                restorer.position = restorer.checkpoint or limits.get(partition, 0)
                completed.add(partition)
            else:
                to_start[partition] = limits[partition]
        self._start_restoration(to_start, starts, tasks)
        return completed

    def _start_restoration(
        self, ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int], tasks: RestoringTasks
    ) -> None:
        if not ends:
            return
        _LOGGER.debug("Start restoring state stores from changelog topics %s", sorted(map(str, ends)))
        begin: dict[TopicPartition, int] = {}
        for partition, end in ends.items():
            restorer = self._restorers[partition]
            begin[partition] = start = self._starting_offset(restorer, starts[partition], tasks)
            _LOGGER.debug("Restoring partition %s from offset %d to endOffset %d", partition, start, end)
            restorer.restore_started(start, end)
        self._needs_restoring |= set(ends)
        large = {}
        if self._bulk is not None:
            large = {each: start for each, start in begin.items() if ends[each] - start >= _BULK_RECORDS}
        if large and self._bulk is not None:
            self._loading |= set(large)
            self._bulk.start({self._restorers[each]: (start, ends[each]) for each, start in large.items()})
        self._consumer.add({each: start for each, start in begin.items() if each not in large})

    def _starting_offset(self, restorer: StateRestorer, log_start: int, tasks: RestoringTasks) -> int:
        checkpoint, partition, store = restorer.checkpoint, restorer.partition, restorer.store_name
        if checkpoint is not None:
            _LOGGER.log(TRACE, "Found checkpoint %d from changelog %s for store %s.", checkpoint, partition, store)
            return checkpoint
        _LOGGER.log(
            TRACE,
            "Did not find checkpoint from changelog %s for store %s, rewinding to beginning.",
            partition,
            store,
        )
        _LOGGER.info(
            "Restoring task %s's state store %s from beginning of the changelog %s",
            restorer.task,
            store,
            partition,
        )
        if not restorer.store.is_empty():
            self._wipe(partition, tasks)
        return log_start

    def _take_over_loaded(self) -> None:
        """Ingest what the bulk loader has ready; a partition that it is through with goes on with the consumer."""
        if self._bulk is None:
            return
        for load in self._bulk.loaded():
            restorer = self._restorers.get(load.partition)
            if restorer is None or load.partition not in self._loading:
                continue
            if load.files or load.records:
                restorer.ingest(load.files, load.records, load.position)
            if load.last:
                self._loading.discard(load.partition)
                self._consumer.add({load.partition: load.position})

    def _process_next(self, messages: Sequence[Any], restorer: StateRestorer) -> int:
        """Apply the records below the end; returns the offset that comes next."""
        below = [message for message in messages if message.offset() < restorer.end]
        next_offset = below[-1].offset() + 1 if below else restorer.position
        if below:
            restorer.apply(below, next_offset)
        return next_offset

    def _complete(self) -> set[TopicPartition]:
        """Partitions whose consumer position is at their end or past it, whatever the last record was."""
        done = set()
        for partition in self._needs_restoring - self._loading:
            position, restorer = self._consumer.position(partition), self._restorers[partition]
            if position is not None and position >= restorer.end:
                restorer.reached(restorer.end)
                restorer.restore_done()
                done.add(partition)
        self._consumer.remove(done)
        self._needs_restoring -= done
        return done

    def _start_again(self, partition: TopicPartition, tasks: RestoringTasks) -> None:
        """An offset that the log does not have: wipe that one store and restore it from the beginning."""
        restorer = self._restorers[partition]
        _LOGGER.warning(
            "The changelog %s no longer has the offset %d that store %s needs. The store is wiped and restored from"
            " the beginning",
            partition,
            restorer.position,
            restorer.store_name,
        )
        self._consumer.remove([partition])
        self._needs_restoring.discard(partition)
        self._wipe(partition, tasks)
        self.register(restorer)

    def _wipe(self, partition: TopicPartition, tasks: RestoringTasks) -> None:
        tasks[partition].reinitialize_state_stores_for_partitions([partition])
