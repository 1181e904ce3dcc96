"""The seam to librdkafka: its errors, partitions and log lines turned into this project's own."""

from __future__ import annotations

import ctypes
import logging
import re
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    StreamsException,
    UnreleasedInstanceIdException,
)
from streams_runtime.kafka.types import TopicPartition

_AWAY = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)
# What passes by itself: a leader that is being chosen, a coordinator that is being loaded.
PASSING = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        # A transaction with offsets of the group is being ended (KIP-447).
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)
_REFUSALS = (
    (
        frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL}),
        "Check the security settings in spec.kafka.config (security.protocol, sasl.*, ssl.*)",
    ),
    (
        frozenset(
            {
                KafkaError.TOPIC_AUTHORIZATION_FAILED,
                KafkaError.GROUP_AUTHORIZATION_FAILED,
                KafkaError.CLUSTER_AUTHORIZATION_FAILED,
                KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            }
        ),
        "Grant it to the user of spec.kafka.config",
    ),
    (
        frozenset(
            {
                KafkaError.INVALID_CONFIG,
                KafkaError.INVALID_REPLICATION_FACTOR,
                KafkaError.INVALID_PARTITIONS,
                KafkaError.POLICY_VIOLATION,
                KafkaError.TOPIC_EXCEPTION,
                KafkaError._INVALID_ARG,
            }
        ),
        "Correct the setting",
    ),
)

_LOGGER = logging.getLogger("streams_runtime.kafka.client.librdkafka")
# "Failed to … : Local: Broker transport failure" says where the code was, which tells a user nothing.
_ORIGIN = re.compile(r"^(Local|Broker): ")
# Each call by way of a PyDLL raises what is set on its thread; this one does nothing else.
_error_is_set = ctypes.PyDLL(None)["PyErr_Occurred"]
_error_is_set.restype = ctypes.c_void_p


def raise_pending() -> None:
    """Raise what is set on this thread already: first in whatever a producer calls back.

    The binding does not keep the producer's fatal error aside (its error_cb), and flush() goes on to take in reports
    and lines of the log with the error set. Whatever these call would be a SystemError, which is then what flush()
    raises. Raised here, it comes out of flush() as the KafkaException that it is.

    What is called back has to be a method of the object's own class: with an error set Python finds none of a base.
    """
    try:
        _error_is_set()
    except BaseException:
        raise  # what was never caught is a class and its argument yet, of which the binding would keep the second only


def forget_trace(failure: KafkaException) -> None:
    """Let go of the frames that a producer's failure came through, and of what they hold.

    Under Python 3.11 the binding never gives back its reference to what `raise_pending` has raised.
    """
    failure.__traceback__ = None


class QuietLog:
    """Where librdkafka logs to: DEBUG, whatever the line's own level.

    librdkafka reports each failed connection attempt, many a second, on stderr. What a user must know comes
    out of the calls as exceptions and of `wait_for_broker`; the lines themselves are for whoever looks for
    a cause.
    """

    def log(self, level: int, message: str, *args: object) -> None:
        """Called by librdkafka's binding, from its poll; the level is not used."""
        raise_pending()
        del level
        _LOGGER.debug(message, *args)


def error_of(failure: BaseException | KafkaError) -> KafkaError | None:
    """librdkafka's error inside an exception of its binding, or None for any other exception."""
    if isinstance(failure, KafkaError):
        return failure
    if isinstance(failure, KafkaException) and failure.args and isinstance(failure.args[0], KafkaError):
        return failure.args[0]
    return None


def reason_of(error: KafkaError) -> str:
    """What went wrong, in words fit for a user, with Kafka's name of the error for looking it up."""
    text = _ORIGIN.sub("", error.str() or "").rstrip(".")
    return f"{text} ({error.name().lstrip('_')})"


def translated(failure: BaseException | KafkaError, doing: str, address: str) -> StreamsException:
    """The exception of this project for one of librdkafka's; raise it `from` the original.

    `doing` says what was tried ("reading the offsets of orders-0"), `address` is the bootstrap address.
    """
    error = error_of(failure)
    if error is None:
        return StreamsException(f"{doing} at {address} failed: {failure}")
    code, reason = error.code(), reason_of(error)
    if code in _AWAY:
        return BrokerNotAvailableException(
            f"{doing}: no answer from the broker at {address}: {reason}. Check that it runs and that"
            " spec.kafka.bootstrapServers is right; then try again"
        )
    if code in PASSING:
        return BrokerNotAvailableException(
            f"{doing}: the brokers at {address} can't now: {reason}. It passes by itself, once the partition has a"
            " leader or the group a coordinator again; then try again"
        )
    if code == KafkaError.UNRELEASED_INSTANCE_ID:
        return UnreleasedInstanceIdException(
            f"{doing}: {reason}. Stop the other process of this name, or wait until its session has ended"
        )
    for codes, remedy in _REFUSALS:
        if code in codes:
            return ConfigException(f"{doing}: the broker at {address} refused it: {reason}. {remedy}")
    return StreamsException(f"{doing} at {address} failed: {reason}")


def to_confluent(partition: TopicPartition, offset: int | None = None, metadata: str | None = None) -> Any:
    """confluent_kafka's mutable TopicPartition, with an offset and what is committed with it, if they are given."""
    if offset is None:
        return ConfluentTopicPartition(partition.topic, partition.partition)
    if metadata is None:
        return ConfluentTopicPartition(partition.topic, partition.partition, offset)
    return ConfluentTopicPartition(partition.topic, partition.partition, offset, metadata)


def from_confluent(partition: Any) -> TopicPartition:
    """Our value for confluent_kafka's TopicPartition (or Message-like object with fields topic and
    partition).
    """
    return TopicPartition(partition.topic, partition.partition)


def partition_of(message: Message) -> TopicPartition:
    """The partition that a message, or an event about a partition, belongs to."""
    topic, partition = message.topic(), message.partition()
    return TopicPartition(topic or "", -1 if partition is None else partition)


def offset_of(message: Message) -> int:
    """A record's offset; of an end of a partition, where that is."""
    offset = message.offset()
    return -1 if offset is None else offset


def time_of(message: Message) -> int:
    """A record's time in ms since 1970; -1 where it has none."""
    moment: int = message.timestamp()[1]
    return moment
