"""Batches through a sub-topology over real stores, without a broker."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pipeline_kit import Pipeline, Record, batch
from state_kit import memory_folder

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.directory import StateDirectory
from streams_runtime.tasks.processor import BatchProcessor, Counters, ErrorPolicy, Outcome
from streams_runtime.tasks.task import Task
from streams_runtime.topology.plan import TaskId, Topology

Sent = tuple[str, int | None, bytes | None, bytes | None, int, Any]


@dataclass
class FakeProducer:
    """Notes what it is to send: topic, partition if one is named, key, value, time, headers."""

    records: list[Sent] = field(default_factory=list)
    placed: dict[bytes | None, bytes | None] = field(default_factory=dict)
    """Which key decided the partition, where it was not the record's own."""

    def send(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        partition: int | None = None,
        headers: Sequence[Any] | None = None,
        placed_by: Sequence[bytes | None] | None = None,
    ) -> None:
        if placed_by is not None:
            self.placed |= dict(zip(keys, placed_by, strict=True))
        rows = zip(keys, values, timestamps, headers or [None] * len(keys), strict=True)
        self.records += [(topic, partition, *row) for row in rows]


@dataclass
class Bench:
    """A processor over real stores of one sub-topology's tasks 0 and 1."""

    pipeline: Pipeline
    tasks: dict[int, Task]
    counters: Counters = field(default_factory=Counters)
    producer: FakeProducer = field(default_factory=FakeProducer)

    def process(self, *records: Record, policy: str = "fail", topic: str | None = None) -> Outcome:
        self.producer.records.clear()
        processor = BatchProcessor(
            self.pipeline.compiler, self.pipeline.runners, ErrorPolicy(policy, topic), self.counters
        )
        sub, one = self.pipeline.topology.subtopologies[0], batch(*records)
        return processor.apply(sub, self.tasks, one, processor.compute(sub, one), self.producer)  # type: ignore[arg-type]

    def store(self, outcome: Outcome, end: int = 100) -> None:
        for held in outcome.held:
            held.store.write(held.updates, end if held.offset is None else held.offset)


def open_tasks(stack: ExitStack, topology: Topology) -> dict[int, Task]:
    directory = StateDirectory(stack.enter_context(memory_folder()), "app", "test")
    sub, tasks = topology.subtopologies[0], {}
    for number in range(2):
        task = Task(TaskId(0, number), sub, frozenset(TopicPartition(each, number) for each in sub.source_topics))
        task.open(directory)
        task.run()
        stack.callback(task.close)
        tasks[number] = task
    return tasks
