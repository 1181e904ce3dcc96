"""What a batch writes, before it is committed: takes the place of the producer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from streams_runtime.batch.encode import Headers
from streams_runtime.kafka.producer.batch_producer import refuse_before_1970


class Sent(NamedTuple):
    """A record for a topic. Without `partition` its key decides, or the one in Outbox.placed. Time in ms."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers | None = None


class MockProducer:
    """Takes what kafka.producer.batch_producer.BatchProducer takes, and keeps it.

    A time of 0 stays 0, which librdkafka makes 1.
    """

    def __init__(self, counts: Callable[[str], int] = lambda _: 1) -> None:
        """`counts` gives the number of partitions of a topic."""
        self._counts = counts
        self.records: list[Sent] = []
        self.placed: dict[tuple[str, bytes | None], bytes | None] = {}
        """By topic and key: which key decides the partition, where it is not the record's own."""

    def send(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        partition: int | None = None,
        headers: Sequence[Headers | None] | None = None,
        placed_by: Sequence[bytes | None] | None = None,
        chosen_partitions: Sequence[int | None] | None = None,
    ) -> None:
        """Keep the records. Raises ProducerException for a timestamp before 1970."""
        refuse_before_1970(topic, timestamps)
        if placed_by is not None:
            self.placed |= {(topic, key): by for key, by in zip(keys, placed_by, strict=True)}
        rows = zip(keys, values, timestamps, headers or [None] * len(keys), strict=True)
        numbers = [partition if each is None else each for each in chosen_partitions or [None] * len(keys)]
        self.records += [Sent(topic, number, *row) for number, row in zip(numbers, rows, strict=True)]

    def partition_count(self, topic: str, more_than: int = 0) -> int:
        """How many partitions a topic has; nobody gives it more."""
        del more_than
        return self._counts(topic)
