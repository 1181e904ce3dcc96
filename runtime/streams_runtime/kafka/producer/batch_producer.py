"""Writing a batch's output: hand over many records fast, then know that all of them were written."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, repeat
from operator import length_hint
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer

from streams_runtime.batch.encode import Headers
from streams_runtime.errors import ProducerException, StreamsException
from streams_runtime.kafka.client.bounded import OverdueError, bounded
from streams_runtime.kafka.client.librdkafka import remind
from streams_runtime.kafka.client.librdkafka_errors import QuietLog, error_of, forget_trace, reason_of
from streams_runtime.kafka.producer.delivery_reports import Failures, is_of_absence, is_of_records, place
from streams_runtime.kafka.producer.partitioner import partition_for

T = TypeVar("T")

BATCH_BYTES, MESSAGE_BYTES = "batch.size", "message.max.bytes"
_LOGGER = logging.getLogger("streams_runtime.kafka")
_DEFAULTS: Mapping[str, str] = {
    # Milliseconds that a record waits for company. A batch comes at once and is flushed, so waiting buys
    # nothing more.
    "linger.ms": "5",
    # Bytes and records of one request to a partition: larger requests cost the broker less.
    BATCH_BYTES: "1000000",
    MESSAGE_BYTES: "1000000",
    "batch.num.messages": "100000",
    # lz4: a tenth more of the client's processor time, a third less of the broker's, half of the bytes.
    "compression.type": "lz4",
    # What may wait for the broker: one batch and more, without taking the pod's memory when the broker is
    # away.
    "queue.buffering.max.messages": "1000000",
    "queue.buffering.max.kbytes": "262144",
}
_DECIDED: Mapping[str, str | bool] = {
    "enable.idempotence": "true",
    "acks": "all",
    "partitioner": "murmur2_random",
    "delivery.report.only.error": True,
    # A topic that was deleted is a fault to be seen, also where the brokers would make it anew.
    "allow.auto.create.topics": "false",
}
# 0 is without end: while the broker is away, records wait.
_FOR_EVER: Mapping[str, str] = {"message.timeout.ms": "0"}
# Seconds between two looks at `should_stop`.
_TICK = 0.2
# Seconds of waiting after which, and then again after which, a line says so.
_PATIENCE = 10.0
# Seconds that close() has to hand over the reports of what it discards.
_CLOSE_TIMEOUT = 5.0
# Seconds that librdkafka has to free a producer; DNS may hold its threads up for as long.
_FREE_TIMEOUT = 15.0
_METADATA_SECONDS = 5.0
# Records that are handed over in one call, in which no other thread has its turn: a millisecond's work.
_AT_ONCE = 1000


def producer_setting(properties: Mapping[str, str], name: str) -> str:
    """What a producer with these properties has."""
    return properties.get(name, _DEFAULTS[name])


class BatchProducer:
    """Sends the output of batches. One thread uses it at a time.

    Records are kept in order within a partition and written once (idempotence) unless the process dies.
    While the broker is away both `send` and `flush` wait, until `should_stop` returns True.

    After a ProducerException the batch counts as not written: close this producer and make another one.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        client_id: str,
        should_stop: Callable[[], bool] = lambda: False,
        settings: Mapping[str, str] = _FOR_EVER,
    ) -> None:
        """`properties` come from `client_properties`, `settings` from a subclass. Does not connect yet."""
        self.address = properties["bootstrap.servers"]
        self._should_stop = should_stop
        self._failures = Failures()
        self._waiting_since = 0.0
        self._closed = False
        self._partitions: dict[str, int] = {}
        self._config: dict[str, Any] = {
            **_DEFAULTS,
            **properties,
            **_DECIDED,
            **settings,
            "client.id": client_id,
        }
        self._producer = self._made()

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
        """Hands records over; they are written for certain only when `flush` returns.

        Record i is (`keys[i]`, `values[i]`, `timestamps[i]`, `headers[i]`); a value None is a tombstone;
        timestamps are milliseconds since 1970, UTC. Without `partition` the key decides, as it does in the
        Java client; records without a key are spread at random. `placed_by` are the keys that decide in place of the
        records' own: a windowed key lies where the key in it does (Kafka Streams' WindowedStreamPartitioner).
        `chosen_partitions` are those of single records; where one is None, it is as without them.

        Timestamp 0 is written as 1, because librdkafka takes 0 for "now".

        Raises ProducerException for a record that can never be written (too large, a timestamp before 1970,
        a topic that is not there) or when told to stop. Raises ValueError if the sequences differ in length.
        """
        rows = len(keys)
        if len(values) != rows or len(timestamps) != rows or (headers is not None and len(headers) != rows):
            raise ValueError(f"{rows} keys, {len(values)} values and {len(timestamps)} timestamps are not one batch")
        times = _sendable(topic, timestamps)
        if placed_by is None:
            partitions = [-1 if partition is None else partition] * rows
        else:
            partitions = self._partitions_of(topic, placed_by)
        if chosen_partitions is not None:
            partitions = [own if it is None else it for own, it in zip(partitions, chosen_partitions, strict=True)]
        self._waiting_since = time.monotonic()
        self._should_stop()  # a sign of life: a batch may be handed over in many calls, none of which waits
        self._hand_over(topic, keys, values, times, partitions, headers)
        self._poll(0)
        self._raise_failures()

    def partition_count(self, topic: str, more_than: int = 0) -> int:
        """How many partitions a topic has; asks the brokers anew if it had not so many when they were asked last.

        Waits for a broker that is away, as `send` does. Raises ProducerException as `send` does.
        """
        if self._partitions.get(topic, 0) <= more_than:
            self._waiting_since = time.monotonic()
            self._partitions[topic] = self._count_of(topic)
        return self._partitions[topic]

    def flush(self) -> None:
        """Waits until the brokers have acknowledged every record that was sent.

        Raises ProducerException if any was refused (with the partition and the broker's reason) or when
        told to stop.
        """
        self._waiting_since = time.monotonic()
        while left := self._heard(self._method("flush"), _TICK):
            self._wait_or_stop(left)
        self._raise_failures()

    def close(self) -> None:
        """Discards what was not flushed and frees everything. Returns within seconds; may be called twice."""
        if not self._closed:
            self._closed = True
            self._discard()

    def _hand_over(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        times: Sequence[int],
        partitions: Sequence[int],
        headers: Sequence[Headers | None] | None,
    ) -> None:
        """Produce all records, in order, without a step in Python for each."""
        left = iter(list(values))  # an iterator over a list knows how many are left
        columns: list[Iterable[Any]] = [repeat(topic), left, keys, partitions, repeat(None), repeat(None), times]
        if headers is not None:
            columns.append(headers)
        produced = map(self._producer.produce, *columns)
        while length_hint(left):
            try:
                try:
                    deque(islice(produced, _AT_ONCE), 0)
                except BufferError:
                    row = _last_taken(left, len(values))
                    header = None if headers is None else headers[row]
                    record = (topic, values[row], keys[row], partitions[row], None, None, times[row], header)
                    self._produce_when_there_is_room(*record)
            except KafkaException as failure:
                del produced  # as _method says
                row = _last_taken(left, len(values))
                error = error_of(failure)
                reason = reason_of(error) if error else str(failure)
                text = f"record {row} for {place(topic, partitions[row])} can't be written: {reason}"
                raise self._refused(error, text, topic if is_of_records(error) else None) from failure

    def _partitions_of(self, topic: str, keys: Sequence[bytes | None]) -> list[int]:
        count = self.partition_count(topic)
        place = {key: -1 if key is None else partition_for(key, count) for key in set(keys)}
        return [place[key] for key in keys]

    def _count_of(self, topic: str) -> int:
        """Waits for a broker that is away, as sending does."""
        while True:
            try:
                found = self._heard(lambda seconds: self._producer.list_topics(topic, seconds), _METADATA_SECONDS)
            except StreamsException:
                self._wait_or_stop(0)
                continue
            description = found.topics[topic]
            if description.error is None:
                return len(description.partitions)
            text = f"topic {topic} can't be written: {reason_of(description.error)}"
            raise self._judged(description.error, text)

    def _made(self) -> Producer:
        self._failures = Failures()
        return Producer({**self._config, "on_delivery": self._failures.note}, logger=self._logger())

    def _logger(self) -> QuietLog:
        """Where the producer that is being made logs to."""
        return QuietLog()

    def _discard(self) -> None:
        """Free librdkafka's producer with all that it holds. One that can't be freed in time is left to itself."""
        held = [self._producer]
        del self._producer
        try:
            bounded(partial(_dispose, held), _FREE_TIMEOUT)
        except OverdueError:
            _LOGGER.warning(
                "the producer %s was not freed within %g s and is left to itself; another one takes its place",
                self._config["client.id"],
                _FREE_TIMEOUT,
            )

    def _method(self, name: str) -> Callable[[float], Any]:
        """The producer's method of this name, looked up when it is called: in a frame that raises, the method itself
        would keep the producer from being freed for as long as somebody has what is raised.
        """

        def call(seconds: float) -> Any:
            return getattr(self._producer, name)(seconds)

        return call

    def _poll(self, seconds: float) -> None:
        self._heard(self._method("poll"), seconds)

    def _heard(self, listen: Callable[[float], T], seconds: float) -> T:
        """Take in what librdkafka reports meanwhile; a producer that has failed for good raises here."""
        remind(self._producer, self.address)
        try:
            return listen(seconds)
        except KafkaException as failure:
            forget_trace(failure)
            raise self._judged(error_of(failure), f"records were not written: {failure}") from failure

    def _judged(self, error: KafkaError | None, text: str) -> StreamsException:
        """The exception for an output that was not written because of `error`."""
        failure = ProducerException(f"{text}. {_REMEDY}")
        failure.for_want_of_topic = is_of_absence(error)
        return failure

    def _refused(self, error: KafkaError | None, text: str, topic: str | None) -> StreamsException:
        """The same; `topic` refuses records for what they are."""
        if topic is not None:
            text += "; spec.processing.onProductionError may leave such records out"
        failure = self._judged(error, text)
        if isinstance(failure, ProducerException):
            failure.refusing_topic = topic
        return failure

    def _produce_when_there_is_room(self, *record: Any) -> None:
        while True:
            self._poll(_TICK)
            self._wait_or_stop(len(self._producer))
            with suppress(BufferError):
                return self._producer.produce(*record)

    def _raise_failures(self) -> None:
        found = self._failures
        if found.count:
            count, texts, error, topic = found.count, "; ".join(found.texts), found.first, found.refusing_topic
            found.forget()
            raise self._refused(error, f"{count} records were not written: {texts}", topic)

    def _wait_or_stop(self, waiting: int) -> None:
        if self._should_stop():
            raise ProducerException(
                f"stopped while {waiting} records waited for the broker at {self.address}; nothing of this"
                " batch was committed, and it is read again at the next start"
            )
        if time.monotonic() - self._waiting_since > _PATIENCE:
            self._waiting_since = time.monotonic()
            _LOGGER.warning(
                "%d records wait for the broker at %s; they are kept and sent when it answers",
                waiting,
                self.address,
            )


_REMEDY = "Nothing of this batch was committed; it is read again when the cause is gone"


def _dispose(held: list[Producer]) -> None:
    """Free the producer that is held, on the thread that calls.

    Its own close() would first wait for an open transaction's abort, however long the broker is away; without any
    reference to it, librdkafka frees it as it is.
    """
    producer = held.pop()
    producer.purge(in_queue=True, in_flight=True, blocking=True)
    try:
        producer.flush(_CLOSE_TIMEOUT)
    except KafkaException as failure:
        forget_trace(failure)


def _last_taken(left: Iterator[Any], rows: int) -> int:
    """The number of the last of so many rows that an iterator over a list has given."""
    return rows - length_hint(left) - 1


def _sendable(topic: str, timestamps: Sequence[int]) -> Sequence[int]:
    refuse_before_1970(topic, timestamps)
    return timestamps if min(timestamps, default=1) else [timestamp or 1 for timestamp in timestamps]


def refuse_before_1970(topic: str, timestamps: Sequence[int]) -> None:
    """Raise ProducerException if one of these times (ms) is none that a record can have."""
    earliest = min(timestamps, default=1)
    if earliest < 0:
        raise ProducerException(
            f"record {timestamps.index(earliest)} for {topic} has the timestamp {earliest}, which is before"
            " 1970; Kafka has no such records. Correct the source's `timestamp` expression or its data"
        )
