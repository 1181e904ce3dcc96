"""What one librdkafka producer reports of records that were not written."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError

from streams_runtime.kafka.client.librdkafka_errors import raise_pending, reason_of

_SHOWN = 3  # texts; the others are counted
# What brokers refuse single records for (RecordTooLargeException, InvalidTimestampException, InvalidRecordException).
_OF_RECORDS = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_TIMESTAMP, KafkaError.INVALID_RECORD})

# A record that was to be sent once more when librdkafka let its partition go has _DESTROY.
_ABSENT = frozenset(
    {
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._DESTROY,
    }
)
# librdkafka's own: the transaction had failed before, so the record was not taken, or was thrown away. They may come
# before the report on the record that made it fail.
_ECHOES = frozenset({KafkaError._STATE, KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})


class Failures:
    """Records that were refused or given up, until they are forgotten. A producer that is made anew has its own."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.count = 0
        self.texts: list[str] = []
        self.first: KafkaError | None = None
        """The first that is a cause, else the first echo of one."""
        self.refusing_topic: str | None = None
        """The first topic that refused a record for what it is."""

    def note(self, error: KafkaError | None, message: Any) -> None:
        """librdkafka's report on one record."""
        raise_pending()
        if error is None:
            return
        self.count += 1
        if self.first is None or (is_echo(self.first) and not is_echo(error)):
            self.first = error
            self.texts.clear()
        elif is_echo(error) and not is_echo(self.first):
            return  # what made its transaction fail is told
        if is_of_records(error):
            self.refusing_topic = self.refusing_topic or message.topic()
        partition = message.partition()
        text = f"{place(message.topic(), -1 if partition is None else partition)}: {reason_of(error)}"
        if len(self.texts) < _SHOWN and text not in self.texts:
            self.texts.append(text)


def is_of_records(error: KafkaError | None) -> bool:
    """Whether brokers, or librdkafka, refuse a record for what it is."""
    return error is not None and error.code() in _OF_RECORDS


def is_echo(error: KafkaError) -> bool:
    """Whether a record was left out because another one had made its transaction fail."""
    return error.code() in _ECHOES


def is_of_absence(error: KafkaError | None) -> bool:
    """Whether a record is not written because its topic is not there."""
    return error is not None and error.code() in _ABSENT


def place(topic: str, partition: int) -> str:
    """`topic-partition`; the topic alone where the partition is not known (-1)."""
    return topic if partition < 0 else f"{topic}-{partition}"
