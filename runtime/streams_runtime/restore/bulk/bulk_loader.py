"""BulkLoader: large restorations in worker processes, which turn a changelog into SST files.

RocksDB calls from Python hold the interpreter's lock, and so does looking at each record; a worker has its own
interpreter. It reads its partitions, keeps the last record of each key, and writes sorted files; this process only
takes the files over.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.restorer import StateRestorer

_LOGGER = logging.getLogger("streams_runtime.restore")


@dataclass(frozen=True, slots=True)
class Load:
    """What a worker has ready of one partition: `records` records in `files`, all before `position`.

    `last`: nothing more comes; the consumer goes on at `position`. Without files and records it only says how far the
    worker has read; what it has read is still to come.
    """

    partition: TopicPartition
    files: tuple[Path, ...]
    records: int
    position: int
    last: bool


@dataclass(slots=True)
class _Job:
    restorer: StateRestorer
    position: int
    end: int
    folder: Path


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[str]
    jobs: dict[TopicPartition, _Job] = field(default_factory=dict)
    abandoned: list[Path] = field(default_factory=list)  # it may still write there; removed when it has ended


class BulkLoader:
    """Starts at most `workers` processes at a time and hands out what they have ready. One thread uses it."""

    def __init__(self, properties: Mapping[str, str], workers: int | None = None) -> None:
        """`properties` are client properties (kafka.client.client_properties.client_properties)."""
        self._properties = dict(properties)
        self._limit = workers or os.cpu_count() or 1
        self._workers: list[_Worker] = []
        self._idle: list[subprocess.Popen[str]] = []
        self._ready: queue.SimpleQueue[tuple[_Worker, dict[str, Any] | None]] = queue.SimpleQueue()
        self._put_back: list[tuple[_Worker, dict[str, Any] | None]] = []

    def begin(self) -> None:
        """Start the processes before it is known what is to be loaded: one takes a third of a second to be there.

        Those that get nothing to do end with `dismiss`, or by themselves.
        """
        self._idle += [_process() for _ in range(self._limit - len(self._idle))]

    def dismiss(self) -> None:
        """End the processes that have nothing to do."""
        for process in self._idle:
            process.kill()
            process.communicate()
        self._idle.clear()

    def start(self, ranges: Mapping[StateRestorer, tuple[int, int]]) -> None:
        """Load each restorer's records start <= offset < end; the partitions are shared out evenly."""
        jobs = sorted(ranges.items(), key=lambda item: item[1][0] - item[1][1])  # the longest first
        shares: list[list[_Job]] = [[] for _ in range(min(self._limit, len(jobs)))]
        for restorer, (start, end) in jobs:
            folder = self._empty_folder(restorer)
            share = min(shares, key=lambda each: sum(job.end - job.position for job in each))
            share.append(_Job(restorer, start, end, folder))
        for share in shares:
            self._start_worker(share)
        self.dismiss()

    def loaded(self) -> Iterable[Load]:
        """What has become ready since the last call, in order within a partition."""
        found = self._put_back
        self._put_back = []
        while not self._ready.empty():
            found.append(self._ready.get())
        for worker, event in found:
            yield from self._ended(worker) if event is None else self._loads(worker, event)

    def wait(self, seconds: float) -> None:
        """Wait until something is ready, at most `seconds`."""
        try:
            self._put_back.append(self._ready.get(timeout=seconds))
        except queue.Empty:
            return

    def cancel(self, partition: TopicPartition) -> None:
        """Drop what is still to come of the partition; a worker without any other ends."""
        for worker in self._workers:
            job = worker.jobs.pop(partition, None)
            if job is not None:
                worker.abandoned.append(job.folder)
                if not worker.jobs:
                    _end(worker)

    def close(self) -> None:
        """End all workers and drop what they wrote."""
        self.dismiss()
        for worker in self._workers:
            worker.abandoned += [job.folder for job in worker.jobs.values()]
            worker.jobs.clear()
            _end(worker)
        self._workers.clear()

    def _empty_folder(self, restorer: StateRestorer) -> Path:
        """One of its own in NAME.bulk, from where a killed process left something perhaps."""
        parent = restorer.store.folder.with_name(restorer.store.folder.name + ".bulk")
        in_use = {folder for worker in self._workers for folder in worker.abandoned}
        for each in parent.glob("*"):
            if each not in in_use:
                shutil.rmtree(each, ignore_errors=True)
        parent.mkdir(exist_ok=True)
        return Path(tempfile.mkdtemp(dir=parent))

    def _start_worker(self, jobs: list[_Job]) -> None:
        process = self._idle_process() or _process()
        worker = _Worker(process, {job.restorer.partition: job for job in jobs})
        order = {
            "parent": os.getpid(),
            "properties": self._properties,
            "jobs": [
                {
                    "topic": job.restorer.partition.topic,
                    "partition": job.restorer.partition.partition,
                    "start": job.position,
                    "end": job.end,
                    "folder": str(job.folder),
                    "rocksdb": asdict(job.restorer.store.options.settings),
                }
                for job in jobs
            ],
        }
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018
        # Settings may hold secrets: they go through the pipe, not through the command line.
        with contextlib.suppress(BrokenPipeError):  # it has just ended, and so does its output
            json.dump(order, process.stdin)
            process.stdin.close()
        self._workers.append(worker)
        threading.Thread(target=self._listen, args=(worker, process.stdout), daemon=True, name="bulk-restore").start()

    def _idle_process(self) -> subprocess.Popen[str] | None:
        """One that was begun and has nothing to do yet."""
        while self._idle:
            process = self._idle.pop()
            if process.poll() is None:
                return process
            process.communicate()  # it is gone; its pipes are not
        return None

    def _listen(self, worker: _Worker, output: IO[str]) -> None:
        for line in output:
            self._ready.put((worker, json.loads(line)))
        worker.process.wait()
        output.close()
        self._ready.put((worker, None))

    def _loads(self, worker: _Worker, event: dict[str, Any]) -> Iterable[Load]:
        partition = TopicPartition(event["topic"], event["partition"])
        job = worker.jobs.get(partition)
        if job is None:
            return
        if "read" in event:
            yield Load(partition, (), 0, event["read"], last=False)
            return
        job.position = event["position"]
        files = tuple(Path(file) for file in event["files"])
        yield Load(partition, files, event["records"], job.position, event["last"])
        if event["last"]:
            del worker.jobs[partition]
            _discard(job.folder)

    def _ended(self, worker: _Worker) -> Iterable[Load]:
        """A worker's process is gone; what it has not finished, the consumer restores."""
        if worker in self._workers:
            self._workers.remove(worker)
        for partition, job in worker.jobs.items():
            _LOGGER.warning(
                "The worker that loads %s in bulk ended with code %s before it was through; going on at offset %d"
                " without it, which is slower",
                partition,
                worker.process.returncode,
                job.position,
            )
            worker.abandoned.append(job.folder)
            yield Load(partition, (), 0, job.position, last=True)
        worker.jobs.clear()
        _remove(worker)


def _process() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "streams_runtime.restore.bulk.bulk_worker"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _end(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.wait()
    _remove(worker)


def _remove(worker: _Worker) -> None:
    """What a worker that has ended left."""
    for folder in worker.abandoned:
        _discard(folder)
    worker.abandoned.clear()


def _discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # the store's next load is there
        folder.parent.rmdir()
