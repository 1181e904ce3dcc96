"""Batches through a sub-topology over real stores, without a broker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from typing import Any

from pipeline_kit import Pipeline, Record, batch
from state_kit import memory_folder

from streams_runtime.state.directory import StateDirectory
from streams_runtime.tasks.processor import BatchProcessor, Counters, Outcome
from streams_runtime.tasks.task import Task
from streams_runtime.tasks.unreadable import ErrorPolicy
from streams_runtime.testing.machine import running_tasks, store
from streams_runtime.testing.outbox import Outbox
from streams_runtime.topology.partitions import partition_counts
from streams_runtime.topology.plan import TaskId, Topology


@dataclass
class Bench:
    """A processor over real stores of one sub-topology's tasks, by partition."""

    pipeline: Pipeline
    tasks: dict[int, Task]
    counters: Counters = field(default_factory=Counters)
    producer: Outbox = field(default_factory=Outbox)

    def process(self, *records: Record, policy: str = "fail", topic: str | None = None) -> Outcome:
        self.producer.records.clear()
        processor = BatchProcessor(
            self.pipeline.compiler, self.pipeline.runners, ErrorPolicy(policy, topic), self.counters
        )
        sub, one = self.pipeline.topology.subtopologies[0], batch(*records)
        return processor.apply(sub, self.tasks, one, processor.compute(sub, one), self.producer)  # type: ignore[arg-type]

    def written(self, records: Sequence[Record], cuts: Iterable[int]) -> list[tuple[bytes | None, Any, int]]:
        """Key, JSON value and time of what goes to the topic `out` while the records are processed, and stored, in
        batches that are cut before these.
        """
        found = []
        for first, end in batches(len(records), cuts):
            self.store(self.process(*records[first:end]))
            found += [
                (key, value and json.loads(value), time)
                for topic, _, key, value, time, _ in self.producer.records
                if topic == "out"
            ]
        return found

    def store(self, outcome: Outcome, end: int = 100) -> None:
        store(outcome, lambda _: end)

    def written_each(
        self, cases: Sequence[tuple[Sequence[Record], Iterable[int]]]
    ) -> list[list[tuple[bytes | None, Any, int]]]:
        """The same of cases that share batches, so that there are as few of these as the longest case has: the first
        part of each, then the second, and so on. A case is a partition, and its keys begin with its `mark`, by which
        what the sink has is told apart; the mark is taken off.
        """
        parts = [
            [
                [
                    replace(each, key=each.key and mark(number) + each.key, partition=number)
                    for each in records[first:end]
                ]
                for first, end in batches(len(records), cuts)
            ]
            for number, (records, cuts) in enumerate(cases)
        ]
        found: list[list[tuple[bytes | None, Any, int]]] = [[] for _ in cases]
        for together in zip_longest(*parts, fillvalue=[]):
            for key, value, time in self.written([each for part in together for each in part], ()):
                assert key, "a record without a key is of no case"
                found[key[0] - mark(0)[0]].append((key[1:], value, time))
        return found


def mark(case: int) -> bytes:
    """What the keys of a case begin with."""
    return bytes([ord("A") + case])


def batches(records: int, cuts: Iterable[int]) -> Iterable[tuple[int, int]]:
    """First and end of each batch of so many records that are cut before these."""
    return pairwise(sorted({0, records, *(cut for cut in cuts if cut < records)}))


def open_tasks(stack: ExitStack, topology: Topology, partitions: int = 2) -> dict[int, Task]:
    directory = StateDirectory(stack.enter_context(memory_folder()), "app", "test")
    counts = partition_counts(topology, dict.fromkeys(topology.source_topics, partitions))
    ids = [TaskId(0, number) for number in range(partitions)]
    return running_tasks(stack, topology.subtopologies[0], ids, counts, directory)
