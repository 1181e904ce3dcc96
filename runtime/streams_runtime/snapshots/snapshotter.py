"""Makes the snapshots of a client's stores, one after the other, on a thread of its own."""

from __future__ import annotations

import logging
import random
import shutil
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.retry_backoff import backoff_delay
from streams_runtime.snapshots.bucket import Bucket
from streams_runtime.snapshots.bucket_probe import require_conditional_writes
from streams_runtime.snapshots.capture import BusyStoreException, Checkpoint, checkpoint_folder, take_checkpoint
from streams_runtime.snapshots.manifest import StoreKey
from streams_runtime.snapshots.snapshot_account import SnapshotAccount, SnapshotTotals
from streams_runtime.snapshots.snapshot_settings import SnapshotSettings
from streams_runtime.snapshots.snapshot_writer import Contents, OvertakenException, SnapshotWriter, StoppedException
from streams_runtime.snapshots.throttle import Throttle
from streams_runtime.state.database.open_database import StoreClosed
from streams_runtime.state.store import LocalStore
from streams_runtime.topology.plan import TaskId

_LOGGER = logging.getLogger("streams_runtime.snapshots")
RATE = 64 * 1024 * 1024
"""Bytes a second that are read and sent at most: half a gigabit, which leaves brokers the rest of a pod's network."""
_STANDING = 3600.0  # seconds after which a store that stands still is published again, since snapshots age
_LOOK = 1.0  # seconds between two looks at a store that has not reached what its changelog had
_FIRST_RETRY, _LAST_RETRY = 10.0, 600.0
_END_SECONDS = 5.0
_MARKER = 1  # a transaction's marker may follow the last record; no store counts it before its next record


class Ends(Protocol):
    """Answers where partitions end (kafka.admin.kafka_admin.Admin)."""

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...


@dataclass(slots=True, eq=False)
class _Entry:
    """A store, and how its snapshots go. `bound`: the changelog ended at this offset at this time (s since 1970)."""

    task: TaskId
    store: LocalStore
    inputs: Callable[[], Mapping[TopicPartition, int]]
    account: SnapshotAccount
    due: float
    writer: SnapshotWriter | None = None
    bound: tuple[float, int] | None = None
    failed: int = 0
    gone: bool = False


class Snapshotter:
    """Keeps snapshots of the stores of running tasks. Its methods may be called from any thread, and return at once.

    Nothing that goes wrong here reaches the tasks: it is logged, counted, and tried again later.
    """

    def __init__(
        self,
        application: str,
        instance: str,
        settings: SnapshotSettings,
        open_bucket: Callable[[], Bucket],
        ends: Ends,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`clock` in seconds since 1970; `chance` gives numbers from 0 to 1, which spread the first snapshots."""
        self._application = application
        self._instance = instance
        self._settings = settings
        self._open_bucket = open_bucket
        self._ends = ends
        self._clock = clock
        self._chance = chance
        self.totals = SnapshotTotals()
        """The snapshots' thread writes it, others read it."""
        self._bucket: Bucket | None = None
        self._throttle = Throttle(RATE)
        self._changed = threading.Condition()
        self._entries: list[_Entry] = []
        self._stopping = False
        self._warned = False
        self._thread = threading.Thread(target=self._run, name=f"{instance}-snapshots", daemon=True)

    @property
    def accounts(self) -> Sequence[SnapshotAccount]:
        """Of each store that snapshots are made of."""
        with self._changed:
            return [each.account for each in self._entries]

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Give up what is under way and end the thread. May be called twice, and before `start`."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_END_SECONDS)

    def add(
        self, task: TaskId, stores: Collection[LocalStore], inputs: Callable[[], Mapping[TopicPartition, int]]
    ) -> None:
        """The task runs. `inputs` says which offsets of its inputs come next, as far as its stores have them."""
        with self._changed:
            for store in stores:
                due = self._clock() + self._settings.interval * self._chance()
                account = SnapshotAccount(store.name, store.partition, self._clock())
                self._entries.append(_Entry(task, store, inputs, account, due))
            self._changed.notify_all()

    def remove(self, tasks: Collection[TaskId]) -> None:
        """The tasks close: no more snapshots of their stores, and one that is under way is given up."""
        with self._changed:
            for each in self._entries:
                each.gone = each.gone or each.task in tasks
            self._entries = [each for each in self._entries if not each.gone]
            self._changed.notify_all()

    def turn(self) -> float:
        """Make one snapshot that is due, if there is any; returns the seconds until the next one is."""
        with self._changed:
            entry = min(self._entries, key=lambda each: each.due, default=None)
        if entry is None:
            return self._settings.interval
        left = entry.due - self._clock()
        if left > 0:
            return left
        self._attempt(entry)
        return 0.0

    def _run(self) -> None:
        while not self._stopping:
            left = self.turn()
            with self._changed:
                if left > 0 and not self._stopping:
                    self._changed.wait(min(left, _LOOK * 60))

    def _attempt(self, entry: _Entry) -> None:
        folder = checkpoint_folder(entry.store.folder)
        try:
            entry.due = self._clock() + self._next(entry, folder)
            entry.failed = 0
            self._warned = False
        except (StoppedException, StoreClosed):
            entry.due = self._clock() + _LOOK
        except OvertakenException as error:
            _LOGGER.info("%s. None is made here", error)
            entry.due = self._clock() + self._settings.interval
        except Exception as error:
            if entry.gone:
                return
            self._note_failure(entry, error)
            if not isinstance(error, (StreamsException, BusyStoreException, OSError)):
                _LOGGER.error("this is a defect of the runtime, which goes on without the snapshot", exc_info=error)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _next(self, entry: _Entry, folder: Path) -> float:
        """Make the snapshot if it is time; seconds until the next look at this store."""
        offset = entry.store.offset()
        if offset is None or entry.store.topic_id() is None:
            return _LOOK
        account = entry.account
        stands = account.offset == offset and account.created is not None
        if stands and self._clock() - (account.created or 0.0) < max(_STANDING, self._settings.interval):
            return self._settings.interval
        bound = entry.bound = entry.bound or self._end_of(entry.store.changelog)
        if bound is None or offset + _MARKER < bound[1]:
            return _LOOK
        writer = entry.writer = entry.writer or self._writer(entry)
        inputs = entry.inputs()  # before the checkpoint: the store has at least these
        checkpoint = take_checkpoint(entry.store, folder, lambda: entry.gone or self._stopping)
        if checkpoint is None or checkpoint.offset is None or checkpoint.topic_id is None:
            return _LOOK
        self._publish(entry, writer, checkpoint, inputs, bound[0])
        entry.bound = None
        return self._settings.interval

    def _publish(
        self,
        entry: _Entry,
        writer: SnapshotWriter,
        checkpoint: Checkpoint,
        inputs: Mapping[TopicPartition, int],
        as_of: float,
    ) -> None:
        account, now = entry.account, self._clock()
        self.totals.longest_pause = max(self.totals.longest_pause, checkpoint.pause)
        assert checkpoint.offset is not None
        assert checkpoint.topic_id is not None
        contents = Contents(
            task=str(entry.task),
            changelog=entry.store.changelog.topic,
            topic_id=checkpoint.topic_id,
            offset=checkpoint.offset,
            inputs={f"{each.topic}-{each.partition}": offset for each, offset in sorted(inputs.items())},
            format=entry.store.format,
            as_of=int(as_of * 1000),
            created=int(now * 1000),
        )
        done = writer.publish(checkpoint.folder, contents, lambda: entry.gone or self._stopping)
        account.created, account.offset, account.size = now, checkpoint.offset, done.manifest.size
        self.totals.made += 1
        self.totals.uploaded += done.uploaded
        _LOGGER.info(
            "snapshot %d of store %s at offset %d: %d files of %d bytes, of which %d bytes went up",
            done.manifest.number,
            writer.key,
            checkpoint.offset,
            len(done.manifest.files),
            done.manifest.size,
            done.uploaded,
        )
        writer.collect(self._settings.keep)

    def _end_of(self, changelog: TopicPartition) -> tuple[float, int] | None:
        """When the changelog was looked at, and where it ended; None when the brokers do not name it."""
        now = self._clock()
        end = self._ends.end_offsets([changelog]).get(changelog)
        return None if end is None else (now, end)

    def _writer(self, entry: _Entry) -> SnapshotWriter:
        if self._bucket is None:
            bucket = self._open_bucket()
            require_conditional_writes(bucket, self._application)
            self._bucket = bucket
        key = StoreKey(self._application, entry.store.name, entry.store.partition)
        return SnapshotWriter(self._bucket, key, self._instance, self._throttle)

    def _note_failure(self, entry: _Entry, error: Exception) -> None:
        self.totals.failures += 1
        delay = backoff_delay(entry.failed, _FIRST_RETRY, _LAST_RETRY)
        entry.failed += 1
        entry.due = self._clock() + delay
        say = _LOGGER.info if self._warned else _LOGGER.warning
        self._warned = True
        say(
            "the snapshot of store %s of task %s failed: %s. Processing goes on, and it is tried again in %.0f s and"
            " later; until then a restoration reads more of the changelog. Check spec.state.snapshots (url, secretRef),"
            " the bucket's rights and the network",
            entry.store.name,
            entry.task,
            error,
            delay,
        )
