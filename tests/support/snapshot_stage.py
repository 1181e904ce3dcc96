"""A store that is restored in a test, from a changelog that is played and from snapshots that others have left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from changelog_records import Change
from restore_heard import Heard
from snapshot_kit import memory_bucket
from state_kit import contents, key_value_store, memory_folder
from waiting import eventually

from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.types import TopicDescription, TopicPartition
from streams_runtime.restore.changelog_reader import StoreChangelogReader
from streams_runtime.restore.restore_progress import ProgressListener
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.restore.snapshot_start import SnapshotStart
from streams_runtime.snapshots.bucket import Bucket
from streams_runtime.snapshots.capture import checkpoint_folder, take_checkpoint
from streams_runtime.snapshots.manifest import Manifest, StoreKey
from streams_runtime.snapshots.manifest_chain import read_chain
from streams_runtime.snapshots.snapshot_fetcher import SnapshotFetcher
from streams_runtime.snapshots.snapshot_settings import SnapshotSettings
from streams_runtime.snapshots.snapshotter import Snapshotter
from streams_runtime.state.store import KeyValueStore, Updates
from streams_runtime.topology.plan import TaskId

TASK, KEY = TaskId(0, 0), StoreKey("app", "totals", 0)
LOG = TopicPartition("app-totals-changelog", 0)


@dataclass
class Task:
    """Wipes its store as a task does."""

    store: KeyValueStore
    id: TaskId = TASK

    def reinitialize_state_stores_for_partitions(self, partitions: Collection[TopicPartition]) -> None:
        assert partitions == [LOG]
        self.store.wipe()


@dataclass
class Brokers:
    """One changelog of a thousand records, of which key `n % 100` has the last."""

    start: int = 0
    records: list[Change] = field(
        default_factory=lambda: [Change(n, b"%d" % (n % 100), b"%d" % n) for n in range(1000)]
    )
    topic_id: str = "id"
    config: dict[str, str] = field(
        default_factory=lambda: {"cleanup.policy": "compact", "delete.retention.ms": "86400000"}
    )
    reads: list[int] = field(default_factory=list)
    position: dict[TopicPartition, int] = field(default_factory=dict)

    def start_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.start)

    def end_offsets(
        self, partitions: Collection[TopicPartition], read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, len(self.records))

    def committed_offsets(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {}

    def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        return dict.fromkeys(names, self.topic_id)

    def describe_topics(self, names: Collection[str], config: bool = True) -> dict[str, TopicDescription]:
        return {name: TopicDescription(name, 1, 1, self.config, self.topic_id) for name in names}

    # What a ChangelogConsumer does:

    def add(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        self.position |= {each: at or 0 for each, at in offsets.items()}

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        for each in partitions:
            self.position.pop(each, None)

    def unsubscribe(self) -> None:
        self.position.clear()

    def poll(self, limit: int, wait: float) -> dict[TopicPartition, list[Change]]:
        found = {each: self.records[at:] for each, at in self.position.items()}
        for each, records in found.items():
            self.reads += [record.number for record in records]
            self.position[each] = len(self.records)
        return {each: records for each, records in found.items() if records}


class Consumer:
    """The brokers' consumer; `position` is a method there."""

    def __init__(self, brokers: Brokers) -> None:
        self.add, self.remove, self.unsubscribe, self.poll = (
            brokers.add,
            brokers.remove,
            brokers.unsubscribe,
            brokers.poll,
        )
        self.position = brokers.position.get


class Stage:
    """An instance with an empty store, and a bucket in which another one has left a snapshot at offset 900."""

    def __init__(self, folder: Path, bucket: Bucket, store: KeyValueStore) -> None:
        self.folder, self.bucket, self.store = folder, bucket, store
        self.now, self.clock, self.brokers, self.heard = 1_000_000.0, 0.0, Brokers(), Heard()
        self.progress = ProgressListener(self.heard)
        self.restorer = StateRestorer(TASK, store)
        self.fetcher = SnapshotFetcher(lambda: self.bucket, lambda: self.clock, lambda: self.now)
        self.leave_snapshot(900)
        self.now += 60
        self.reader = self._new_reader()

    def begin_anew(self) -> None:
        """Another process: nothing is known of `store` but its files."""
        self.restorer = StateRestorer(TASK, self.store)
        self.brokers.reads.clear()
        self.brokers.position.clear()
        self.reader = self._new_reader()

    def _new_reader(self) -> StoreChangelogReader:
        return StoreChangelogReader(
            cast("ChangelogConsumer", Consumer(self.brokers)),
            self.brokers,
            "app",
            self.progress,
            poll_seconds=0.01,
            snapshots=SnapshotStart("app", self.fetcher, self.brokers, self.progress.on_snapshot, least_records=500),
        )

    def leave_snapshot(
        self,
        offset: int,
        topic_id: str = "id",
        extra: bytes = b"only in the snapshot",
        spoil: Callable[[Path], object] | None = None,
    ) -> Manifest:
        """Another instance's, of the changelog up to `offset`; `spoil` does something to that one's files before."""
        with key_value_store(self.folder / str(offset) / "rocksdb") as store:
            applied = {record.k: record.v for record in self.brokers.records[:offset]}
            keys = cast("list[bytes]", list(applied))
            store.write(Updates([*keys, extra], [*applied.values(), b"1"], [7] * (len(keys) + 1)), offset)
            store.follow(topic_id, offset)
            if spoil is not None:
                assert take_checkpoint(store, checkpoint_folder(store.folder)) is not None, "all of it is in files"
                spoil(store.folder)
            ends = Brokers(records=self.brokers.records[:offset])
            making = Snapshotter(
                "app",
                "other",
                SnapshotSettings("memory://", 60.0, 5),
                lambda: self.bucket,
                ends,
                lambda: self.now,
                lambda: 0.0,
            )
            making.add(TASK, [store], dict)
            assert making.turn() <= 0
            assert making.totals.made == 1
        head = read_chain(self.bucket, KEY, 1).head
        assert head is not None
        return head

    def restore(self) -> None:
        """Until the store is complete."""
        self.reader.register(self.restorer)
        self.finish()

    def finish(self) -> None:
        eventually(lambda: self.reader.restore({LOG: Task(self.store)}) == {LOG})

    @property
    def has_all(self) -> bool:
        """Whether the store has what the changelog has."""
        return {each: contents(self.store).get(each) for each in (b"0", b"57", b"99")} == {
            b"0": b"900",
            b"57": b"957",
            b"99": b"999",
        }

    @property
    def began_with_snapshot(self) -> bool:
        return b"only in the snapshot" in contents(self.store)


@contextmanager
def staged() -> Iterator[Stage]:
    """One whose folders are gone at the end."""
    with memory_folder() as folder, key_value_store(folder / "here" / "rocksdb") as store:
        yield Stage(folder, memory_bucket(), store)
