"""The state updaters of a client, each with a restore consumer of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.bulk.bulk_loader import BulkLoader
from streams_runtime.restore.changelog_reader import StoreChangelogReader
from streams_runtime.restore.restore_listener import SuspendReason
from streams_runtime.restore.restore_progress import ProgressListener
from streams_runtime.restore.restore_start import Offsets
from streams_runtime.restore.snapshot_start import NoSnapshots, SnapshotStart
from streams_runtime.restore.standby_progress import StandbyProgress
from streams_runtime.restore.standby_reader import StandbyReader
from streams_runtime.restore.state_updater import Reader, StateUpdater
from streams_runtime.topology.plan import TaskId


@dataclass(frozen=True, slots=True)
class Updaters:
    """What they are made of. `properties` are client properties, which say read_committed under exactly once.

    `poll_seconds` is poll.ms. `snapshots` makes what begins a reader's stores, and is given what hears of that.
    """

    properties: Mapping[str, str]
    offsets: Offsets
    group: str
    progress: ProgressListener
    standby_progress: StandbyProgress
    poll_seconds: float
    exactly_once: bool
    snapshots: Callable[[Callable[[TopicPartition, int], None]], SnapshotStart | NoSnapshots] = lambda _: NoSnapshots()

    def for_thread(self, name: str, cold: Callable[[], bool]) -> StateUpdater:
        """A thread's own, which restores its tasks; not started.

        `cold` is asked once the thread has started: whether stores are likely to be loaded in bulk, so that what does
        it starts with the thread.
        """

        def make_reader() -> tuple[Reader, Callable[[], None]]:
            consumer = ChangelogConsumer(self.properties, name)
            bulk = BulkLoader(self.properties)
            if cold():
                bulk.begin()

            def free() -> None:
                bulk.close()
                consumer.close()

            reader = StoreChangelogReader(
                consumer,
                self.offsets,
                self.group,
                self.progress,
                bulk,
                self.poll_seconds,
                self.exactly_once,
                self.progress.on_read,
                snapshots=self.snapshots(self.progress.on_snapshot),
            )
            return reader, free

        return StateUpdater(name, make_reader, self.progress.spent)

    def for_standbys(self, name: str, reason: Callable[[TaskId], SuspendReason]) -> StateUpdater:
        """The client's, which keeps its standbys; not started. It waits while active tasks are being restored."""

        def make_reader() -> tuple[Reader, Callable[[], None]]:
            consumer = ChangelogConsumer(self.properties, name)
            reader = StandbyReader(
                consumer,
                self.offsets,
                self.group,
                self.standby_progress,
                lambda: self.progress.ongoing,
                reason,
                self.poll_seconds,
                snapshots=self.snapshots(lambda *_: None),
            )
            return reader, consumer.close

        return StateUpdater(name, make_reader, self.standby_progress.spent)
