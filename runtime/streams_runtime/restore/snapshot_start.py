"""Which stores begin with a snapshot: it is waited for, taken over, and the changelog goes on behind it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.types import TopicDescription, TopicPartition
from streams_runtime.restore.restore_start import Log, beginning
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.snapshots.manifest import StoreKey
from streams_runtime.snapshots.snapshot_fetcher import Fetch, SnapshotFetcher
from streams_runtime.snapshots.usable_snapshots import Wanted, tombstones_of
from streams_runtime.state.database.damaged_files import DAMAGED
from streams_runtime.state.state_directory import DOWNLOADS

_LOGGER = logging.getLogger("streams_runtime.restore")
_LEAST_RECORDS = 10_000  # of a changelog that is shorter all is read before a bucket has answered


class Topics(Protocol):
    """Answers what topics are set to (kafka.admin.kafka_admin.Admin)."""

    def describe_topics(self, names: Collection[str], config: bool = True) -> dict[str, TopicDescription]: ...


class NoSnapshots:
    """Every store begins with its changelog."""

    is_ready = False

    def holds(self, restorer: StateRestorer, log: Log) -> bool:  # noqa: ARG002
        """No store is held back."""
        return False

    def forget(self, partition: TopicPartition) -> None:
        """Nothing to forget."""


class SnapshotStart:
    """Fetches snapshots for the stores of one reader of changelogs, whose thread calls everything.

    A store gets one try for as long as it is registered. Whatever goes wrong, the changelog has all of it.
    """

    def __init__(
        self,
        application: str,
        fetcher: SnapshotFetcher,
        topics: Topics,
        on_snapshot: Callable[[TopicPartition, int], None] = lambda *_: None,
        least_records: int = _LEAST_RECORDS,
    ) -> None:
        """`on_snapshot` hears which store has begun with a snapshot, and the offset that it was made at."""
        self._application = application
        self._fetcher = fetcher
        self._topics = topics
        self._on_snapshot = on_snapshot
        self._least_records = least_records
        self._fetches: dict[TopicPartition, Fetch] = {}
        self._tried: set[TopicPartition] = set()

    @property
    def is_ready(self) -> bool:
        """Whether `holds` would let go of a store that it has held."""
        return any(self._fetcher.is_through(each) for each in list(self._fetches.values()))

    def holds(self, restorer: StateRestorer, log: Log) -> bool:
        """Whether the store waits for a snapshot; ask again. When it no longer does, it has what there was to have.

        Raises:
            ProcessorStateException: the disk is full or damaged.
            BrokerNotAvailableException: ask again.
        """
        partition = restorer.partition
        if partition not in self._tried:
            self._begin(restorer, log)
            self._tried.add(partition)
        fetch = self._fetches.get(partition)
        if fetch is None:
            return False
        if not self._fetcher.is_through(fetch):
            return True
        del self._fetches[partition]
        if fetch.manifest is not None:
            self._take_over(restorer, fetch)
        return False

    def forget(self, partition: TopicPartition) -> None:
        """The store is not restored here any more, or from its beginning by whoever has it."""
        self._tried.discard(partition)
        fetch = self._fetches.pop(partition, None)
        if fetch is not None:
            self._fetcher.cancel(fetch)

    def _begin(self, restorer: StateRestorer, log: Log) -> None:
        store = restorer.store
        known = beginning(restorer.checkpoint, log, store.topic_id()).known
        if known or log.topic_id is None or log.limit - log.start < self._least_records:
            return
        if DAMAGED.was_in(store.folder):
            # Files that were damaged when they went up have the right checksums: they would be fetched for ever.
            _LOGGER.warning(
                "store %s-%d had damaged files. Its snapshots may have the same damage, and it is restored from its"
                " changelog",
                store.name,
                store.partition,
            )
            return
        described = self._topics.describe_topics([restorer.partition.topic]).get(restorer.partition.topic)
        if described is None:
            return
        tombstones = tombstones_of(described.config)
        wanted = Wanted(store.format, restorer.partition.topic, log.topic_id, log.start, log.limit, tombstones)
        key = StoreKey(self._application, store.name, store.partition)
        self._fetches[restorer.partition] = self._fetcher.ask(key, wanted, _download_folder(store.folder))

    def _take_over(self, restorer: StateRestorer, fetch: Fetch) -> None:
        manifest, store = fetch.manifest, restorer.store
        assert manifest is not None
        try:
            store.adopt(fetch.folder)
            there = store.offset(), store.topic_id()
            if there == (manifest.offset, manifest.topic_id):
                self._on_snapshot(restorer.partition, manifest.offset)
                return
            why = f"its files are at offset {there[0]} of topic {there[1]}, and the manifest says {manifest.offset}"
        except StreamsException as error:
            why = str(error)
        _LOGGER.warning(
            "snapshot %d of store %s is put aside: %s. The store is restored from its changelog",
            manifest.number,
            fetch.key,
            why,
        )
        store.start_empty()


def _download_folder(store_folder: Path) -> Path:
    """A new one, on the disk of the task's stores: a fetch that was given up may still write to an earlier one."""
    return store_folder.parent.parent / DOWNLOADS / f"{store_folder.name}.{uuid.uuid4().hex[:8]}"
