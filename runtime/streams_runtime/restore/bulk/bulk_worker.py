"""The process of a bulk load: changelog partitions in, sorted SST files out.

Reads one JSON object (properties and jobs) from stdin and writes one JSON object a line to stdout for each set of
files that is ready: {"topic", "partition", "files", "records", "position", "last"}; and once a second how far it has
read a partition: {"topic", "partition", "read"}.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.consumer.latest_consumer import Fetched, LatestConsumer
from streams_runtime.kafka.consumer.message_columns import Latest, in_pieces, merged, sorted_rows
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.malloc_settings import keep_what_is_freed
from streams_runtime.state.database.rocksdb_adapter import write_sst
from streams_runtime.state.database.rocksdb_options import RocksDBOptions, RocksDBSettings
from streams_runtime.state.store import stamped

_POLL_SECONDS = 0.05
# Contents held, for all partitions of this worker, before those that later records have replaced are dropped.
_CHUNK_BYTES = 160 * 1024 * 1024
_FULL = 0.75  # of these bytes are left then: a file is written
_MERGE_BYTES = 32 * 1024 * 1024  # contents of polls that are not worth merging yet
_NEWS_SECONDS = 1.0  # between two words of how far a partition is read
_PATIENCE_SECONDS = 30.0  # without an order; a group gives tasks before that
_WRITE_RECORDS = 5_000  # records of a file that are Python's at a time
_PR_SET_PDEATHSIG = 1


class _Partition:
    """One partition being loaded: the last record of each key since the last file."""

    def __init__(
        self, partition: TopicPartition, position: int, end: int, folder: Path, options: RocksDBOptions
    ) -> None:
        self.partition = partition
        self.position = position
        self.end = end
        self._folder = folder
        self._options = options
        self._files = 0
        self._records = 0
        self._parts: list[Latest] = []
        self._since = 0  # bytes of the parts that came since they were merged

    @property
    def size(self) -> int:
        """Bytes held."""
        return sum(each.nbytes for each in self._parts)

    def add(self, fetched: Fetched) -> None:
        """Take in what was read, in order."""
        self._records += fetched.records
        if len(fetched.latest):
            self._parts.append(fetched.latest)
            self._since += fetched.latest.nbytes
            if self._since > max(_MERGE_BYTES, self.size - self._since):
                self.merge()

    def ready(self, position: int, last: bool) -> dict[str, Any]:
        """Write what is held to a file and say so."""
        files = []
        if self._parts:
            self.merge()
            path = self._folder / f"{self._files:06}.sst"
            write_sst(path, _stored(self._parts.pop()), self._options)
            files.append(str(path))
        records, self._records = self._records, 0
        self._files += len(files)
        self.position = position
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "files": files,
            "records": records,
            "position": position,
            "last": last,
        }

    def merge(self) -> None:
        """Drop what later records have replaced."""
        if self._parts:
            self._parts = [merged(self._parts)]
        self._since = 0


def _stored(latest: Latest) -> Iterator[tuple[bytes, bytes | None]]:
    """Contents as a store holds them, sorted by key."""
    for part in in_pieces([latest], sorted_rows(latest.keys), _WRITE_RECORDS):
        values = stamped(part.timestamps, part.values)
        yield from zip(part.keys.to_pylist(), values.to_pylist(), strict=True)


def load(properties: Mapping[str, str], jobs: Sequence[Mapping[str, Any]]) -> None:
    """Load all jobs' partitions and report to stdout."""
    partitions = {}
    for job in jobs:
        partition = TopicPartition(job["topic"], job["partition"])
        options = RocksDBOptions(RocksDBSettings(**job["rocksdb"]))
        partitions[partition] = _Partition(partition, job["start"], job["end"], Path(job["folder"]), options)
    consumer = LatestConsumer(properties, f"bulk-restore-{os.getpid()}")
    consumer.add({each: (it.position, it.end) for each, it in partitions.items()})
    news_at = time.monotonic() + _NEWS_SECONDS
    while partitions:
        try:
            found = consumer.poll(_POLL_SECONDS)
        except InvalidOffsetException as invalid:
            # The consumer of the main process meets the same offset and wipes the store.
            gone = partitions.pop(invalid.partition)
            consumer.remove([invalid.partition])
            _report(gone.ready(gone.position, last=True))
            continue
        for each, fetched in found.items():
            partitions[each].add(fetched)
        _report_complete(consumer, partitions)
        if _held(partitions) > _CHUNK_BYTES:
            for it in partitions.values():
                it.merge()
            # RocksDB has to put a file that is written early together with later ones: as few as can be.
            if _held(partitions) > _FULL * _CHUNK_BYTES:
                fullest = max(partitions.values(), key=lambda it: it.size)
                _report(fullest.ready(consumer.position(fullest.partition), last=False))
        if time.monotonic() > news_at:
            news_at = time.monotonic() + _NEWS_SECONDS
            _report_read(consumer, partitions)


def _held(partitions: Mapping[TopicPartition, _Partition]) -> int:
    return sum(it.size for it in partitions.values())


def _report_complete(consumer: LatestConsumer, partitions: dict[TopicPartition, _Partition]) -> None:
    for each, it in list(partitions.items()):
        if consumer.position(each) >= it.end:
            _report(it.ready(it.end, last=True))
            consumer.remove([each])
            del partitions[each]


def _report_read(consumer: LatestConsumer, partitions: Iterable[TopicPartition]) -> None:
    for each in partitions:
        _report({"topic": each.topic, "partition": each.partition, "read": consumer.position(each)})


def _report(event: Mapping[str, Any]) -> None:
    print(json.dumps(event), flush=True)


def _end_with(parent: int) -> None:
    """Let the kernel end this process when its parent dies, however it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main() -> None:
    """Entry point of the process, which may be started before there is anything to do."""
    asked, _, _ = select.select([sys.stdin], [], [], _PATIENCE_SECONDS)
    text = sys.stdin.read() if asked else ""
    if not text:
        return  # nobody wants it, or whoever started it is gone
    order = json.loads(text)
    _end_with(order["parent"])
    # No cycles come with records, and looking for some among all that is held takes a fifth of the time.
    gc.disable()
    # Arrow's own pool gives memory back to the system after each poll, and takes it anew for the next one.
    pa.set_memory_pool(pa.system_memory_pool())
    keep_what_is_freed()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    load(order["properties"], order["jobs"])
    # Nothing is left to close in order, and librdkafka would take a second for it.
    os._exit(0)


if __name__ == "__main__":
    main()
