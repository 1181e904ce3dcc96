"""The process of a bulk load: changelog partitions in, sorted SST files out.

Reads one JSON object (properties and jobs) from stdin and writes one JSON object a line to stdout for each set of
files that is ready: {"topic", "partition", "files", "records", "position", "last"}.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streams_runtime.kafka.changelog_consumer import ChangelogConsumer, InvalidOffsetException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.rocksdb import write_sst
from streams_runtime.state.store import stamp

_POLL_RECORDS = 50_000
_POLL_SECONDS = 0.5
_KEPT_MESSAGES = 200_000  # records held as librdkafka's messages, which pin whole fetch buffers
_CHUNK_BYTES = 128 * 1024 * 1024  # contents held before a file is written, for all partitions of this worker
_OVERHEAD_BYTES = 200  # of one key and value in a dict
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
        self._latest: dict[bytes, Any] = {}
        self._stored: dict[bytes, bytes | None] = {}
        self._bytes = 0

    @property
    def size(self) -> int:
        """Bytes held, about."""
        return self._bytes + _OVERHEAD_BYTES * len(self._stored)

    @property
    def waiting(self) -> int:
        """Messages held."""
        return len(self._latest)

    def add(self, messages: Sequence[Any]) -> None:
        """Take records, in order; those at or past the end are left for the consumer."""
        if messages[-1].offset() >= self.end:
            messages = [message for message in messages if message.offset() < self.end]
        latest = self._latest
        for message in messages:
            latest[message.key()] = message
        self._records += len(messages)

    def settle(self) -> None:
        """Turn the messages held into contents."""
        self._latest.pop(None, None)  # type: ignore[call-overload]
        for key, message in self._latest.items():
            value = message.value()
            stored = None if value is None else stamp(message.timestamp()[1], value)
            self._stored[key] = stored
            self._bytes += len(key) + len(stored or b"")
        self._latest.clear()

    def ready(self, position: int, last: bool) -> dict[str, Any]:
        """Write what is held to a file and say so."""
        self.settle()
        files = []
        if self._stored:
            path = self._folder / f"{self._files:06}.sst"
            write_sst(path, sorted(self._stored.items()))
            files.append(str(path))
        records, self._records = self._records, 0
        self._files += len(files)
        self._stored.clear()
        self._bytes = 0
        self.position = position
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "files": files,
            "records": records,
            "position": position,
            "last": last,
        }


def load(properties: Mapping[str, str], jobs: Sequence[Mapping[str, Any]]) -> None:
    """Load all jobs' partitions and report to stdout."""
    partitions = {}
    for job in jobs:
        partition = TopicPartition(job["topic"], job["partition"])
        partitions[partition] = _Partition(partition, job["start"], job["end"], Path(job["folder"]))
    consumer = ChangelogConsumer(properties, f"bulk-restore-{os.getpid()}")
    consumer.add({each: it.position for each, it in partitions.items()})
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
        if sum(it.waiting for it in partitions.values()) > _KEPT_MESSAGES:
            for it in partitions.values():
                it.settle()
        if sum(it.size for it in partitions.values()) > _CHUNK_BYTES:
            fullest = max(partitions.values(), key=lambda it: it.size)
            position = consumer.position(fullest.partition)
            _report(fullest.ready(fullest.position if position is None else position, last=False))
    consumer.close()


def _report_complete(consumer: ChangelogConsumer, partitions: dict[TopicPartition, _Partition]) -> None:
    for each, it in list(partitions.items()):
        position = consumer.position(each)
        if position is not None and position >= it.end:
            _report(it.ready(it.end, last=True))
            consumer.remove([each])
            del partitions[each]


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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    load(order["properties"], order["jobs"])


if __name__ == "__main__":
    main()
