"""What one thread measures of its polls, batches, commits and tasks, and of the records that pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from streams_runtime.metrics.metric_definition import Level
from streams_runtime.metrics.sampled import Sampled, Spread, spread_of
from streams_runtime.metrics.tracing import BatchTrace

STAGES = ("spark", "process", "commit", "changelog-ends", "store")
"""Parts of a batch's time: the wait for what Spark makes of it; stores read, and output handed to the producer; output
acknowledged, and offsets or transaction committed; the brokers asked where changelogs end; stores written."""
K = TypeVar("K")


class ThreadRecorder:
    """The measurements of one thread, and of the threads that had its number before it.

    The thread records, once a poll, a batch or a commit, never for a single record. Any thread reads.
    """

    def __init__(
        self,
        level: Level = Level.INFO,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        trace: BatchTrace | None = None,
    ) -> None:
        """`clock` is the one of what is read; `wall` gives seconds since 1970, which records' ages are told by.

        `trace` hears of stages and batches as well.
        """
        self.debug = level is Level.DEBUG
        self.clock = clock
        self._wall = wall
        self._trace = trace
        self.started_at: float | None = None
        """When the thread began, in seconds since 1970."""
        self.failures = 0
        """Threads of this number that an error has ended."""
        self.blocked = 0.0
        """Seconds in which it waited for the brokers: for records, for acknowledgements, for commits."""
        self.poll, self.poll_records = Sampled(), Sampled()
        self.process, self.process_records = Sampled(), Sampled()
        self.commit = Sampled()
        self.tasks_created, self.tasks_closed = Sampled(), Sampled()
        self.stages = {stage: Sampled() for stage in STAGES}
        self.task_process: dict[int, Sampled] = {}
        """Seconds of each batch, by sub-topology."""
        self.task_records: dict[int, Sampled] = {}
        self.task_commit: dict[int, Sampled] = {}
        self.node_records: dict[str, Sampled] = {}
        self.latency: dict[str, Sampled] = {}
        """Ages of records in ms, by source or terminal node (KIP-613)."""
        self.dropped: dict[tuple[str, str], Sampled] = {}
        """By declared step and reason."""
        self.consumed: dict[str, int] = {}
        self.produced: dict[str, int] = {}
        self.produced_bytes: dict[str, int] = {}
        self.put_all: dict[str, Sampled] = {}
        self.written: dict[str, int] = {}

    def begin(self) -> None:
        """The thread begins."""
        self.started_at = self._wall()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The block waits for the brokers, however it ends."""
        began = self.clock()
        try:
            yield
        finally:
            self.blocked += self.clock() - began

    def polled(self, seconds: float, records: int) -> None:
        """A look for the next batch took so long, and came by so many records."""
        now = self.clock()
        self.poll.record(seconds, now)
        self.poll_records.record(records, now)

    def stage(self, stage: str, seconds: float) -> None:
        """A stage of a batch took so long."""
        self.stages[stage].record(seconds, self.clock())
        if self._trace is not None:
            self._trace.stage(stage, seconds)

    def ended(self, error: BaseException | None = None) -> None:
        """A batch is stored; or it failed with `error`, and will be read again."""
        if self._trace is not None:
            self._trace.end(error)

    def processed(self, subtopology: int, seconds: float, records: int) -> None:
        """A batch was processed: Spark's side and the stores', until its output was handed over."""
        now = self.clock()
        self.process.record(seconds, now)
        self.process_records.record(records, now)
        _of(self.task_process, subtopology).record(seconds, now)
        _of(self.task_records, subtopology).record(records, now)
        if self._trace is not None:
            self._trace.processed(subtopology, records)

    def committed(self, subtopology: int, seconds: float) -> None:
        """A batch is committed; it took so long from the end of its processing."""
        now = self.clock()
        self.commit.record(seconds, now)
        _of(self.task_commit, subtopology).record(seconds, now)

    def read(self, source: str, topic: str, records: int, timestamps: Spread | None) -> None:
        """A source has read so many records of a batch."""
        if records:
            self.consumed[topic] = self.consumed.get(topic, 0) + records
            self.entered(source, records)
            if timestamps is not None and timestamps.count:
                self.aged(source, timestamps)

    def entered(self, node: str, records: int) -> None:
        """So many records have come to a node."""
        if records:
            _of(self.node_records, node).record(records, self.clock())

    def aged(self, node: str, timestamps: Spread) -> None:
        """Records with these timestamps (ms) are at a source, or have come to the end of their way."""
        _of(self.latency, node).record_all(timestamps.ages(self._wall() * 1000), self.clock())

    def sent(
        self,
        topic: str,
        node: str | None,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
    ) -> None:
        """Records for a topic were handed to the producer; `node`: the sink, None for letters and the like."""
        if not keys:
            return
        self.produced[topic] = self.produced.get(topic, 0) + len(keys)
        if self.debug:
            size = sum(map(len, filter(None, keys))) + sum(map(len, filter(None, values)))
            self.produced_bytes[topic] = self.produced_bytes.get(topic, 0) + size
        if node is not None:
            self.entered(node, len(keys))
            self.aged(node, spread_of(timestamps))

    def drop(self, step: str, reason: str, records: int) -> None:
        """A step has left out so many records."""
        if records:
            _of(self.dropped, (step, reason)).record_all(Spread(records, records, 1, 1), self.clock())

    def stored(self, store: str, records: int, seconds: float) -> None:
        """One partition of a store took a batch's updates, in one atomic write."""
        self.written[store] = self.written.get(store, 0) + records
        if self.debug:
            _of(self.put_all, store).record(seconds, self.clock())

    def dropped_records(self, now: float) -> Mapping[tuple[str, str], int]:
        """How many records were left out since the start, by step and reason."""
        return {each: sampled.reading(now).count for each, sampled in self.dropped.copy().items()}


def _of(kept: dict[K, Sampled], key: K) -> Sampled:
    found = kept.get(key)
    if found is None:
        found = kept[key] = Sampled()
    return found
