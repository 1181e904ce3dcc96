"""Batches through a sub-topology over real stores, without a broker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from case_marks import BY_KEY, Marks, Row, separated
from pipeline_kit import Pipeline, Record, batch
from shared_cases import batches, shared_batches
from state_kit import memory_folder

from streams_runtime.processing.batch_processor import BatchProcessor
from streams_runtime.processing.batch_work import Counters, Outcome
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.tasks.task import Task
from streams_runtime.testing.mock_producer import MockProducer
from streams_runtime.testing.topology_runner import running_tasks, store
from streams_runtime.topology.partition_counts import partition_counts
from streams_runtime.topology.plan import TaskId, Topology

Case = tuple[Sequence[Record], Iterable[int]]
"""Records, and before which of them a batch begins."""
Sinks = dict[str, list[Row]]
"""Each sink's records in order."""


@dataclass
class Bench:
    """A processor over real stores of one sub-topology's tasks, by partition."""

    pipeline: Pipeline
    tasks: dict[int, Task]
    counters: Counters = field(default_factory=Counters)
    producer: MockProducer = field(default_factory=MockProducer)

    def process(self, *records: Record, policy: str = "fail", topic: str | None = None) -> Outcome:
        self.producer.records.clear()
        processor = BatchProcessor(self.pipeline.runners, ErrorPolicy(policy, topic), self.counters)
        sub, one = self.pipeline.topology.subtopologies[0], batch(*records)
        return processor.apply(sub, self.tasks, one, processor.compute(sub, one), self.producer)  # type: ignore[arg-type]

    def written(self, records: Sequence[Record], cuts: Iterable[int]) -> list[Row]:
        """Key, JSON value and time of what goes to the topic `out` while the records are processed, and stored, in
        batches that are cut before these.
        """
        return self._sinks([records[first:end] for first, end in batches(len(records), cuts)])["out"]

    def store(self, outcome: Outcome, end: int = 100) -> None:
        store(outcome, lambda _: end)

    def sinks_each(self, cases: Sequence[Case], marks: Marks, partitions: int = 1) -> list[Sinks]:
        """What goes to each sink, in order, of cases that share batches; see `together`."""
        return sinks_apart(self._sinks(together(cases, marks, partitions)), marks, len(cases))

    def written_each(self, cases: Sequence[Case], marks: Marks = BY_KEY) -> list[list[Row]]:
        """The same of the topic `out` alone."""
        return [sinks["out"] for sinks in self.sinks_each(cases, marks)]

    def _sinks(self, parts: Iterable[Sequence[Record]]) -> Sinks:
        found: Sinks = {topic: [] for topic in self.pipeline.topology.sink_topics}
        for part in parts:
            self.store(self.process(*part))
            for topic, _, key, value, time, _ in self.producer.records:
                if topic in found:
                    found[topic].append((key, value and json.loads(value), time))
        return found


def together(cases: Sequence[Case], marks: Marks, partitions: int = 1) -> Iterator[list[Record]]:
    """The batches that cases share when each has marks, and so many partitions, of its own."""
    return shared_batches(
        (
            [replace(marks.put(case, each), partition=case * partitions + each.partition) for each in records],
            cuts,
        )
        for case, (records, cuts) in enumerate(cases)
    )


def sinks_apart(sinks: Sinks, marks: Marks, cases: int) -> list[Sinks]:
    """Each case's part of the sinks, without the marks."""
    apart = {topic: separated(rows, marks, cases) for topic, rows in sinks.items()}
    return [{topic: rows[case] for topic, rows in apart.items()} for case in range(cases)]


def open_tasks(stack: ExitStack, topology: Topology, partitions: int = 2) -> dict[int, Task]:
    directory = StateDirectory(stack.enter_context(memory_folder()), "app", "test")
    counts = partition_counts(topology, dict.fromkeys(topology.source_topics, partitions))
    ids = [TaskId(0, number) for number in range(partitions)]
    return running_tasks(stack, topology.subtopologies[0], ids, counts, directory)
