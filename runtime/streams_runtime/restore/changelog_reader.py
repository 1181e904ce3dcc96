"""StoreChangelogReader: restores stores from their changelog partitions, many at a time, in batches."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from streams_runtime.errors import IllegalStateException, StreamsException, TaskCorruptedException
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore import restore_log
from streams_runtime.restore.bulk.bulk_loader import BulkLoader
from streams_runtime.restore.restore_listener import StateRestoreListener
from streams_runtime.restore.restore_start import Beginning, Log, Offsets, Topics, hold_as_many, look_at
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.restore.snapshot_start import NoSnapshots, SnapshotStart
from streams_runtime.topology.plan import TaskId

_BATCH_RECORDS = 20_000
_BULK_RECORDS = 100_000  # from this many on, starting worker processes pays
_ASK_SECONDS = 1.0  # until the brokers are asked again for a changelog that they do not name yet


def are_worth_workers(topics: Topics, names: Collection[str]) -> bool:
    """Whether the changelogs of these names have a partition so long that worker processes will load it. False as well
    where the brokers don't say: it is a forecast, and whoever restores asks them again.
    """
    try:
        return hold_as_many(topics, names, _BULK_RECORDS)
    except StreamsException:
        return False


class RestoringTask(Protocol):
    """A task whose stores are being restored."""

    @property
    def id(self) -> TaskId: ...

    def reinitialize_state_stores_for_partitions(self, partitions: Collection[TopicPartition]) -> None:
        """Wipe the stores of these changelog partitions."""


RestoringTasks = Mapping[TopicPartition, RestoringTask]


class ChangelogState(enum.StrEnum):
    """How far a changelog of the reader is; Kafka Streams' names."""

    REGISTERED = "REGISTERED"  # its end is not known yet
    RESTORING = "RESTORING"
    COMPLETED = "COMPLETED"


class StoreChangelogReader:
    """Kafka Streams' ChangelogReader: a registry of restorers, and what is still to initialize and to restore.

    Not thread-safe: the state updater's thread owns it. `poll_seconds` is the setting poll.ms, the longest wait of
    one `restore` for records. With `exactly_once` the properties of the consumer and of the bulk loader have to
    say read_committed. `on_read` hears how far a bulk load has read, between what it applies.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - each is a part that it works with
        self,
        consumer: ChangelogConsumer,
        offsets: Offsets,
        group: str,
        listener: StateRestoreListener,
        bulk: BulkLoader | None = None,
        poll_seconds: float = 0.1,
        exactly_once: bool = False,
        on_read: Callable[[TopicPartition, int], None] = lambda *_: None,
        clock: Callable[[], float] = time.monotonic,
        snapshots: SnapshotStart | NoSnapshots | None = None,
    ) -> None:
        self._snapshots = snapshots or NoSnapshots()
        self._held: set[TopicPartition] = set()  # those of needs_initializing that wait for a snapshot
        self._exactly_once = exactly_once
        self._on_read = on_read
        self._clock = clock
        self._consumer = consumer
        self._offsets = offsets
        self._group = group
        self._listener = listener
        self._bulk = bulk
        self._poll_seconds = poll_seconds
        self._restorers: dict[TopicPartition, StateRestorer] = {}
        self._needs_initializing: set[TopicPartition] = set()
        self._unnamed: set[TopicPartition] = set()  # those of needs_initializing that the brokers did not name
        self._initialize_at = 0.0
        self._needs_restoring: set[TopicPartition] = set()
        self._loading: set[TopicPartition] = set()  # those of needs_restoring that the bulk loader has

    def register(self, restorer: StateRestorer) -> None:
        """Restore this store with the next calls of `restore`.

        Raises:
            IllegalStateException: its changelog partition is registered already; `unregister` that one first.
        """
        if restorer.partition in self._restorers:
            raise IllegalStateException(
                f"there is already a restorer registered for {restorer.partition}, of the store"
                f" {self._restorers[restorer.partition].store_name}: unregister it first"
            )
        restorer.set_user_restore_listener(self._listener)
        self._restorers[restorer.partition] = restorer
        self._initialize_next(restorer.partition)

    def unregister(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget these partitions; those that are not complete are suspended."""
        for partition in list(partitions):
            restorer = self._restorers.pop(partition, None)
            if restorer is None:
                continue
            self._snapshots.forget(partition)
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
            self._unnamed.discard(partition)
            self._held.discard(partition)
        if not self._needs_restoring:
            self._consumer.unsubscribe()

    def clear(self) -> None:
        """Forget everything."""
        self.unregister(list(self._restorers))

    def state(self, partition: TopicPartition) -> ChangelogState:
        """How far a registered changelog is. Raises KeyError for one that is not registered."""
        if partition in self._needs_initializing:
            return ChangelogState.REGISTERED
        if partition in self._needs_restoring:
            return ChangelogState.RESTORING
        self._restorers[partition]
        return ChangelogState.COMPLETED

    @property
    def busy(self) -> bool:
        """Whether anything is still to be initialized or restored."""
        return bool(self._needs_initializing or self._needs_restoring)

    @property
    def loading(self) -> bool:
        """Whether the bulk loader is at work, or may be as soon as what is new is initialized."""
        return bool(self._needs_initializing - self._unnamed - self._held or self._loading)

    def restore(self, tasks: RestoringTasks) -> set[TopicPartition]:
        """One round: initialize what is new, apply what comes within poll.ms; returns what is complete now.

        A changelog that the brokers do not name (it is just being made, its leader is being chosen) may hold all of
        its store: it is asked for again every second, and the others go on.

        Raises:
            BrokerNotAvailableException: nothing is lost; call again.
            ProcessorStateException: a store can't be written; its offset and data agree.
        """
        due = self._needs_initializing and (self._clock() >= self._initialize_at or self._snapshots.is_ready)
        completed = self._initialize(tasks) if due else set()
        if not self._needs_restoring:
            self._consumer.unsubscribe()
            if self._needs_initializing and not completed:
                self._consumer.poll(_BATCH_RECORDS, self._poll_seconds)
            return completed
        self._take_over_loaded()
        if self._needs_restoring - self._loading:
            try:
                records = self._consumer.poll(_BATCH_RECORDS, self._poll_seconds)
            except InvalidOffsetException as invalid:
                self._start_again(invalid.partition, tasks)
                return completed
            for partition, messages in records.items():
                restorer = self._restorers[partition]
                self._unless_damaged(restorer, partial(self._process_next, messages, restorer))
            completed |= self._complete()
        elif self._bulk is not None:
            self._bulk.wait(self._poll_seconds)
        if not self._needs_restoring:
            self._consumer.unsubscribe()
        return completed

    def _initialize(self, tasks: RestoringTasks) -> set[TopicPartition]:
        """Find each new partition's end; those that are there already are complete at once."""
        new = {each: self._restorers[each] for each in self._needs_initializing}
        sources = [each for each, restorer in new.items() if restorer.source_changelog]
        logs = look_at(self._offsets, self._group, new, sources)
        held: set[TopicPartition] = set()
        for each, log in logs.items():
            self._unless_damaged(new[each], partial(self._hold, new[each], log, held))
        unnamed = new.keys() - logs.keys()
        for each in sorted(unnamed - self._unnamed):
            restore_log.unnamed(new[each].store_name, each)
        self._needs_initializing, self._unnamed, self._held = unnamed | held, set(unnamed), held
        self._initialize_at = self._clock() + _ASK_SECONDS
        to_start: dict[TopicPartition, Beginning] = {}
        known = (logs.keys() - held) & self._restorers.keys()
        for each in sorted(known):
            self._unless_damaged(new[each], partial(self._find_beginning, new[each], logs[each], to_start, tasks))
        self._start_restoration(to_start, logs)
        return {each for each in known if each not in to_start and each in self._restorers}

    def _hold(self, restorer: StateRestorer, log: Log, held: set[TopicPartition]) -> None:
        if self._snapshots.holds(restorer, log):
            held.add(restorer.partition)

    def _initialize_next(self, partition: TopicPartition) -> None:
        restore_log.added(partition)
        self._needs_initializing.add(partition)
        self._initialize_at = 0.0

    def _find_beginning(
        self, restorer: StateRestorer, log: Log, to_start: dict[TopicPartition, Beginning], tasks: RestoringTasks
    ) -> None:
        begin = restorer.prepare(log, partial(self._wipe, restorer.partition, tasks))
        if begin.offset < log.limit:
            to_start[restorer.partition] = begin

    def _start_restoration(
        self, beginnings: Mapping[TopicPartition, Beginning], logs: Mapping[TopicPartition, Log]
    ) -> None:
        if not beginnings:
            if self._bulk is not None:
                self._bulk.dismiss()
            return
        restore_log.starting(beginnings)
        starts = {each: begin.offset for each, begin in beginnings.items()}
        for partition, start in starts.items():
            restorer = self._restorers[partition]
            known = start if beginnings[partition].known else None
            restore_log.checkpoint(restorer.task, restorer.store_name, partition, known, self._exactly_once)
            restore_log.restoring(partition, start, logs[partition].limit)
            restorer.restore_started(start, logs[partition].limit)
        self._needs_restoring |= set(starts)
        large = {}
        if self._bulk is not None:
            loadable = {each: at for each, at in starts.items() if self._restorers[each].store.takes_files}
            large = {each: at for each, at in loadable.items() if logs[each].limit - at >= _BULK_RECORDS}
        if large and self._bulk is not None:
            self._loading |= set(large)
            self._bulk.start({self._restorers[each]: (at, logs[each].limit) for each, at in large.items()})
        elif self._bulk is not None:
            self._bulk.dismiss()
        self._consumer.add({each: at for each, at in starts.items() if each not in large})

    def _take_over_loaded(self) -> None:
        """Ingest what the bulk loader has ready; a partition that it is through with goes on with the consumer."""
        if self._bulk is None:
            return
        for load in self._bulk.loaded():
            restorer = self._restorers.get(load.partition)
            if restorer is None or load.partition not in self._loading:
                continue
            if load.files or load.records:
                ingest = partial(restorer.ingest, load.files, load.records, load.position)
                if not self._unless_damaged(restorer, ingest):
                    continue
            elif not load.last:
                self._on_read(load.partition, load.position)
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
            if position is None or position < restorer.end:
                continue
            if self._unless_damaged(restorer, partial(restorer.reached, restorer.end)):
                restorer.restore_done()
                done.add(partition)
        self._consumer.remove(done)
        self._needs_restoring -= done
        return done

    def _start_again(self, partition: TopicPartition, tasks: RestoringTasks) -> None:
        """An offset that the log does not have: wipe that one store and restore it from the beginning."""
        restorer = self._restorers[partition]
        restore_log.wiped(
            restorer.store_name, partition, f"the log does not have the offset {restorer.position} any more"
        )
        self._consumer.remove([partition])
        self._needs_restoring.discard(partition)
        restorer.restore_suspended()
        self._wipe(partition, tasks)
        self._initialize_next(partition)

    def _unless_damaged(self, restorer: StateRestorer, step: Callable[[], object]) -> bool:
        """Do `step`; a store with damaged files is left to whoever has its task, and the others go on."""
        try:
            step()
        except TaskCorruptedException as error:
            restore_log.damaged(error)
            self.unregister([restorer.partition])
            return False
        return True

    def _wipe(self, partition: TopicPartition, tasks: RestoringTasks) -> None:
        tasks[partition].reinitialize_state_stores_for_partitions([partition])
