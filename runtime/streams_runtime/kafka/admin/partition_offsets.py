"""What the leaders of partitions say of their offsets: the first, the end, and by time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from streams_runtime.kafka.admin.admin_futures import ABSENT_PARTITION, ASK_AGAIN, NO_LEADERS, Answers, listed
from streams_runtime.kafka.client.librdkafka_errors import from_confluent, to_confluent, translated
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.retry_backoff import backoff

_EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class PartitionOffsets:
    """Asks partitions' leaders. Of all methods: partitions that the brokers do not have are left out."""

    def __init__(
        self, answers: Answers, address: str, partition_counts: Callable[[Collection[str]], Mapping[str, int]]
    ) -> None:
        """`partition_counts`: how many partitions those of the topics have that the brokers have."""
        self._answers = answers
        self._address = address
        self._partition_counts = partition_counts

    def first(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that each partition still has."""
        return self._offsets(partitions, _EARLIEST, IsolationLevel.READ_UNCOMMITTED, "start")

    def end(self, partitions: Collection[TopicPartition], read_committed: bool) -> dict[TopicPartition, int]:
        """The offset after each partition's last record, or with `read_committed` the last stable one."""
        level = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
        return self._offsets(partitions, _LATEST, level, "end")

    def at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset of each partition whose record is of that time (ms since 1970) or later; None: there is
        none.
        """
        if not times:
            return {}
        doing = f"reading by time the offsets of {listed([str(partition) for partition in times])}"

        def ask(asked: Collection[TopicPartition]) -> Any:
            spec: Any = OffsetSpec.for_timestamp
            request = {to_confluent(partition): spec(times[partition]) for partition in asked}
            return self._answers.question(doing, AdminClient.list_offsets, request)

        # A record that is found has a time; where there is none, the offset is negative.
        found = self._of_leaders(ask, times, doing, lambda it: it.offset < 0 or it.timestamp >= 0)
        return {partition: None if result.offset < 0 else result.offset for partition, result in found.items()}

    def _offsets(
        self, partitions: Collection[TopicPartition], spec: Any, level: IsolationLevel, which: str
    ) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        doing = f"reading the {which} offsets of {listed([str(partition) for partition in partitions])}"

        def ask(asked: Collection[TopicPartition]) -> Any:
            request = {to_confluent(partition): spec for partition in asked}
            return self._answers.question(doing, AdminClient.list_offsets, request, isolation_level=level)

        found = self._of_leaders(ask, partitions, doing, lambda result: result.offset >= 0)
        return {partition: result.offset for partition, result in found.items()}

    def _of_leaders(
        self,
        ask: Callable[[Collection[TopicPartition]], Any],
        partitions: Collection[TopicPartition],
        doing: str,
        answers: Callable[[Any], bool],
    ) -> dict[TopicPartition, Any]:
        """The leaders' answers.

        When none of them has a leader, librdkafka does not say which are absent and which are too new to have one.
        While brokers go and come, it may give back its own question (-1 for the end, -2 for the beginning) in place of
        an answer, and no error; `answers` knows.
        """
        end = time.monotonic() + self._answers.timeout
        for delay in backoff(*ASK_AGAIN):
            done = self._answers.all(ask(partitions), doing, ABSENT_PARTITION | {NO_LEADERS}, answers)
            if done:
                break
            counts = self._partition_counts({partition.topic for partition in partitions})
            partitions = [each for each in partitions if each.partition < counts.get(each.topic, 0)]
            if not partitions:
                break
            if time.monotonic() + delay > end:
                raise translated(KafkaError(KafkaError.LEADER_NOT_AVAILABLE), doing, self._address)
            time.sleep(delay)
        return {from_confluent(each): result for each, result in done.items()}
