"""StandbyReader: keeps standby stores as far as their changelogs are, for as long as it has them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from streams_runtime.errors import IllegalStateException, TaskCorruptedException
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore import restore_log
from streams_runtime.restore.changelog_reader import RestoringTasks
from streams_runtime.restore.restore_listener import StandbyUpdateListener, SuspendReason
from streams_runtime.restore.restore_start import Log, Offsets, look_at
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.restore.snapshot_start import NoSnapshots, SnapshotStart
from streams_runtime.topology.plan import TaskId

_BATCH_RECORDS = 20_000
_ASK_SECONDS = 1.0  # between two questions to the brokers: what was committed, whether a topic is there


class Listener(StandbyUpdateListener, Protocol):
    """The client's own account of its standbys (restore.standby_progress)."""

    def on_look(self, partition: TopicPartition, position: int, end: int) -> None:
        """The store has the changelog up to `position`; it ends at `end`."""


class StandbyReader:
    """Follows the changelogs of standby stores; turned by a StateUpdater, to which nothing is ever complete.

    While active tasks of this instance are being restored it reads nothing: they are waited for, standbys are not. A
    user's topic is followed up to what the application has committed of it and no further, since the task that is
    active elsewhere has not processed the rest.
    """

    loading = False

    def __init__(  # noqa: PLR0913, PLR0917 - each is a part that it works with
        self,
        consumer: ChangelogConsumer,
        offsets: Offsets,
        group: str,
        listener: Listener,
        is_restoring: Callable[[], bool],
        reason: Callable[[TaskId], SuspendReason],
        poll_seconds: float = 0.1,
        clock: Callable[[], float] = time.monotonic,
        snapshots: SnapshotStart | NoSnapshots | None = None,
    ) -> None:
        """`reason` says why a standby of the task goes away, when it does."""
        self._snapshots = snapshots or NoSnapshots()
        self._consumer = consumer
        self._offsets = offsets
        self._group = group
        self._listener = listener
        self._is_restoring = is_restoring
        self._reason = reason
        self._poll_seconds = poll_seconds
        self._clock = clock
        self._restorers: dict[TopicPartition, StateRestorer] = {}
        self._new: set[TopicPartition] = set()
        self._begin_at = 0.0
        self._reading: set[TopicPartition] = set()
        self._ends: dict[TopicPartition, int] = {}  # as they were when following began
        self._limits: dict[TopicPartition, int] = {}  # of users' topics
        self._limits_at = 0.0

    @property
    def busy(self) -> bool:
        """Whether there are standbys to be kept."""
        return bool(self._restorers)

    def register(self, restorer: StateRestorer) -> None:
        """Follow this store's changelog from the next round on.

        Raises:
            IllegalStateException: it is followed already; `unregister` that one first.
        """
        if restorer.partition in self._restorers:
            raise IllegalStateException(
                f"there is already a standby registered for {restorer.partition}, of the store"
                f" {self._restorers[restorer.partition].store_name}: unregister it first"
            )
        self._restorers[restorer.partition] = restorer
        self._new.add(restorer.partition)
        self._begin_at = 0.0
        restore_log.added(restorer.partition)

    def unregister(self, partitions: Iterable[TopicPartition]) -> None:
        """Let go of these; nothing touches their stores any more."""
        for partition in list(partitions):
            restorer = self._restorers.pop(partition, None)
            if restorer is None:
                continue
            self._snapshots.forget(partition)
            if partition not in self._new:
                reason, end = self._reason(restorer.task), self._end(restorer)
                self._listener.on_update_suspended(partition, restorer.store_name, restorer.position, end, reason)
            self._new.discard(partition)
            self._ends.pop(partition, None)
            self._limits.pop(partition, None)
        self._read(self._reading & self._restorers.keys())

    def clear(self) -> None:
        """Let go of everything."""
        self.unregister(list(self._restorers))

    def restore(self, tasks: RestoringTasks) -> set[TopicPartition]:
        """One round: apply what comes within poll.ms. Returns nothing, since a changelog that is followed has no end.

        Raises:
            BrokerNotAvailableException: nothing is lost; call again.
            ProcessorStateException: a store can't be written.
        """
        if self._new and (self._clock() >= self._begin_at or self._snapshots.is_ready):
            self._begin(tasks)
        if self._is_restoring():
            self._read(set())
        else:
            self._move_limits()
            self._read({each for each in self._restorers if each not in self._new and not self._at_limit(each)})
        try:
            records = self._consumer.poll(_BATCH_RECORDS, self._poll_seconds)
        except InvalidOffsetException as invalid:
            self._start_again(invalid.partition, tasks)
            return set()
        for partition, messages in records.items():
            self._unless_damaged(self._restorers[partition], partial(self._apply, messages))
        for partition in sorted(self._reading):
            self._unless_damaged(self._restorers[partition], self._note_position)
        # What the consumer handed out beyond a limit was left out: before that moves, it has to go back there.
        self._read({each for each in self._reading if not self._at_limit(each)})
        return set()

    def _begin(self, tasks: RestoringTasks) -> None:
        new = {each: self._restorers[each] for each in self._new}
        sources = [each for each, restorer in new.items() if restorer.source_changelog]
        logs = look_at(self._offsets, self._group, new, sources)
        self._begin_at = self._clock() + _ASK_SECONDS  # for those whose topic or snapshot is not there
        for partition, restorer in new.items():
            log = logs.get(partition)
            if log is None or self._holds(restorer, log):
                continue
            prepare = partial(StateRestorer.prepare, log=log, wipe=self._wiping(partition, tasks))
            if not self._unless_damaged(restorer, prepare):
                continue
            self._new.discard(partition)
            self._ends[partition] = log.limit
            if restorer.source_changelog:
                self._limits[partition] = log.limit
            self._listener.on_update_start(partition, restorer.store_name, restorer.position)
            self._listener.on_look(partition, restorer.position, log.limit)

    def _holds(self, restorer: StateRestorer, log: Log) -> bool:
        """Whether the store waits for a snapshot; one that is damaged begins nowhere."""
        waits: list[bool] = []
        sound = self._unless_damaged(restorer, lambda each: waits.append(self._snapshots.holds(each, log)))
        return not sound or waits[0]

    def _move_limits(self) -> None:
        """Ask from time to time how much of the users' topics the application has committed."""
        if self._limits and self._clock() - self._limits_at >= _ASK_SECONDS:
            self._limits |= self._offsets.committed_offsets(self._group, list(self._limits))
            self._limits_at = self._clock()

    def _at_limit(self, partition: TopicPartition) -> bool:
        limit = self._limits.get(partition)
        return limit is not None and self._restorers[partition].position >= limit

    def _read(self, wanted: Collection[TopicPartition]) -> None:
        """Read these partitions and no others, each from where its store is."""
        self._consumer.remove(self._reading - set(wanted))
        self._consumer.add({each: self._restorers[each].position for each in wanted if each not in self._reading})
        self._reading = set(wanted)

    def _apply(self, messages: Sequence[Any], restorer: StateRestorer) -> None:
        partition, limit = restorer.partition, self._limits.get(restorer.partition)
        if limit is not None:
            messages = [message for message in messages if message.offset() < limit]
        if messages:
            position = messages[-1].offset() + 1
            restorer.apply(messages, position)
            task, end = str(restorer.task), self._end(restorer)
            self._listener.on_batch_loaded(partition, restorer.store_name, task, position, len(messages), end)

    def _note_position(self, restorer: StateRestorer) -> None:
        """The consumer's position passes transaction markers and what compaction removed."""
        position, limit = self._consumer.position(restorer.partition), self._limits.get(restorer.partition)
        if position is not None:
            restorer.reached(max(restorer.position, position if limit is None else min(position, limit)))
        self._listener.on_look(restorer.partition, restorer.position, self._end(restorer))

    def _end(self, restorer: StateRestorer) -> int:
        """Where the log ends as far as it is known: before a first fetch, where it ended when following began.

        Whoever waits for the standby (a warm-up) must not take one that has read nothing for one that lags nothing.
        """
        known = self._limits.get(restorer.partition, self._consumer.end(restorer.partition))
        return max(self._ends.get(restorer.partition, 0) if known is None else known, restorer.position)

    def _start_again(self, partition: TopicPartition, tasks: RestoringTasks) -> None:
        restorer = self._restorers[partition]
        restore_log.wiped(
            restorer.store_name, partition, f"the log does not have the offset {restorer.position} any more"
        )
        self._read(self._reading - {partition})
        self._wiping(partition, tasks)()
        self._new.add(partition)

    def _wiping(self, partition: TopicPartition, tasks: RestoringTasks) -> Callable[[], None]:
        return lambda: tasks[partition].reinitialize_state_stores_for_partitions([partition])

    def _unless_damaged(self, restorer: StateRestorer, step: Callable[[StateRestorer], object]) -> bool:
        """Do `step`; a store with damaged files is left to whoever has the standby, and the others go on."""
        try:
            step(restorer)
        except TaskCorruptedException as error:
            restore_log.damaged(error)
            self.unregister([restorer.partition])
            return False
        return True
