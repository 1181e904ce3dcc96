"""A restore listener for tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from streams_runtime.kafka.types import TopicPartition


@dataclass
class Heard:
    """A listener that writes down what it hears."""

    calls: list[tuple[object, ...]] = field(default_factory=list)

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        self.calls.append(("start", str(partition), store, start, end))

    def on_batch_restored(self, partition: TopicPartition, store: str, batch_end: int, records: int) -> None:
        self.calls.append(("batch", str(partition), store, batch_end, records))

    def on_restore_end(self, partition: TopicPartition, store: str, total: int) -> None:
        self.calls.append(("end", str(partition), store, total))

    def on_restore_suspended(self, partition: TopicPartition, store: str, total: int) -> None:
        self.calls.append(("suspended", str(partition), store, total))
