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
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from streams_runtime.kafka.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.foreign import columns_of, offset_of
from streams_runtime.kafka.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.rocksdb import write_sst
from streams_runtime.state.store import stamp

_POLL_RECORDS = 5_000  # few enough to stay in the processor's cache until they are looked at
_POLL_SECONDS = 0.05
_CHUNK_BYTES = 256 * 1024 * 1024  # contents held before a file is written, for all partitions of this worker
_NEWS_SECONDS = 1.0  # between two words of how far a partition is read
_OVERHEAD_BYTES = 250  # of one key and value in a dict
_PR_SET_PDEATHSIG = 1


class _Partition:
    """One partition being loaded: the last record of each key since the last file."""

    def __init__(self, partition: TopicPartition, position: int, end: int, folder: Path) -> None:
        self.partition = partition
        self.position = position
        self.end = end
        self._folder = folder
        self._files = 0
        self._records = 0
        self._latest: dict[bytes | None, tuple[tuple[int, int], bytes | None]] = {}
        self._largest = 0

    @property
    def size(self) -> int:
        """Bytes held, at most about."""
        return len(self._latest) * (self._largest + _OVERHEAD_BYTES)

    def add(self, messages: Sequence[Any]) -> None:
        """Take records, in order; those at or past the end are left for the consumer."""
        if offset_of(messages[-1]) >= self.end:
            messages = [message for message in messages if offset_of(message) < self.end]
        keys, timestamps, values = columns_of(messages)
        self._latest.update(zip(keys, zip(timestamps, values, strict=True), strict=True))
        self._records += len(messages)
        if messages:
            self._largest = max(self._largest, len(messages[-1]))

    def ready(self, position: int, last: bool) -> dict[str, Any]:
        """Write what is held to a file and say so."""
        self._latest.pop(None, None)
        files = []
        if self._latest:
            path = self._folder / f"{self._files:06}.sst"
            write_sst(path, _stored(self._latest))  # type: ignore[arg-type]
            files.append(str(path))
        records, self._records = self._records, 0
        self._files += len(files)
        self._latest.clear()
        self._largest = 0
        self.position = position
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "files": files,
            "records": records,
            "position": position,
            "last": last,
        }


def _stored(
    latest: Mapping[bytes, tuple[tuple[int, int], bytes | None]],
) -> Iterator[tuple[bytes, bytes | None]]:
    """Contents as a store holds them, sorted by key."""
    for key in sorted(latest):
        (_kind, timestamp), value = latest[key]
        yield key, None if value is None else stamp(timestamp, value)


def load(properties: Mapping[str, str], jobs: Sequence[Mapping[str, Any]]) -> None:
    """Load all jobs' partitions and report to stdout."""
    partitions = {}
    for job in jobs:
        partition = TopicPartition(job["topic"], job["partition"])
        partitions[partition] = _Partition(partition, job["start"], job["end"], Path(job["folder"]))
    consumer = ChangelogConsumer(properties, f"bulk-restore-{os.getpid()}")
    consumer.add({each: it.position for each, it in partitions.items()})
    news_at = time.monotonic() + _NEWS_SECONDS
    while partitions:
        try:
            records = consumer.poll(_POLL_RECORDS, _POLL_SECONDS)
        except InvalidOffsetException as invalid:
            # The consumer of the main process meets the same offset and wipes the store.
            gone = partitions.pop(invalid.partition)
            consumer.remove([invalid.partition])
            _report(gone.ready(gone.position, last=True))
            continue
        for each, messages in records.items():
            if each in partitions:
                partitions[each].add(messages)
        _report_complete(consumer, partitions)
        if sum(it.size for it in partitions.values()) > _CHUNK_BYTES:
            fullest = max(partitions.values(), key=lambda it: it.size)
            position = consumer.position(fullest.partition)
            _report(fullest.ready(fullest.position if position is None else position, last=False))
        if time.monotonic() > news_at:
            news_at = time.monotonic() + _NEWS_SECONDS
            _report_read(consumer, partitions)


def _report_complete(consumer: ChangelogConsumer, partitions: dict[TopicPartition, _Partition]) -> None:
    for each, it in list(partitions.items()):
        position = consumer.position(each)
        if position is not None and position >= it.end:
            _report(it.ready(it.end, last=True))
            consumer.remove([each])
            del partitions[each]


def _report_read(consumer: ChangelogConsumer, partitions: Iterable[TopicPartition]) -> None:
    for each in partitions:
        position = consumer.position(each)
        if position is not None:
            _report({"topic": each.topic, "partition": each.partition, "read": position})


def _report(event: Mapping[str, Any]) -> None:
    print(json.dumps(event), flush=True)


def _end_with(parent: int) -> None:
    """Let the kernel end this process when its parent dies, however it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main() -> None:
    """Entry point of the process."""
    order = json.load(sys.stdin)
    _end_with(order["parent"])
    # No cycles come with records, and looking for some among all that is held takes a fifth of the time.
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    load(order["properties"], order["jobs"])
    # Nothing is left to close in order, and librdkafka would take a second for it.
    os._exit(0)


if __name__ == "__main__":
    main()
