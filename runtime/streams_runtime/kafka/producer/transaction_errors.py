"""What an error of a transaction means for the batch: process it again, give the tasks up, or end."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError

from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    ProducerException,
    ProducerFencedException,
    StreamsException,
    TaskMigratedException,
)
from streams_runtime.kafka.client.librdkafka_errors import translated
from streams_runtime.kafka.producer.delivery_reports import is_echo


class StaleMemberException(StreamsException):
    """The member's epoch is not the group's any more: abort, take part in the group, and process the batch again."""


class UntoldException(StreamsException):
    """The transaction has failed; the next step of it says why."""


class BrokerFailedException(ProducerException):
    """A broker failed at a request; what it had done of it by then is not known."""


# Another producer has the transactional id, or the brokers ended the transaction by themselves. Only an error that is
# fatal says so for certain: of one record it may be the echo of another's, and librdkafka mends the rest by an abort.
_FENCING = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError.INVALID_TXN_STATE,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
)
# The member's epoch moved on while it was busy; brokers answer a transaction ILLEGAL_GENERATION for it.
_STALE = frozenset({KafkaError.ILLEGAL_GENERATION, KafkaError.STALE_MEMBER_EPOCH, KafkaError.REBALANCE_IN_PROGRESS})
_EXPELLED = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_MEMBER_EPOCH, KafkaError.FENCED_INSTANCE_ID})
# The transaction is lost, and another attempt may succeed.
_PASSING = frozenset(
    {
        KafkaError._MSG_TIMED_OUT,
        KafkaError.TRANSACTION_ABORTABLE,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
_REMEDIES: Mapping[type[StreamsException], str] = {
    UntoldException: "The next step of the transaction says why",
    StaleMemberException: "The batch is processed again, with the group's new epoch",
    TaskMigratedException: "The group counts this member out; its tasks are closed and revived from their changelogs",
    ProducerFencedException: "Its transaction timed out, or another process runs under this instance's name: end that"
    " one. The tasks are closed and revived from their changelogs, with a new producer",
    BrokerNotAvailableException: "Nothing of this batch was committed; it is processed again",
    ProducerException: "Nothing of this batch was committed; it is read again when the cause is gone",
    BrokerFailedException: "The broker's log says why. Nothing is lost: the batch is read again",
}


_REVIVED = "the tasks are closed and revived from their changelogs"
# Of these the brokers' answer is clear, or the remedy is the same, at the end of a transaction too.
_CLEAR = (ProducerFencedException, TaskMigratedException, ConfigException)


def judged(error: KafkaError | None, text: str, address: str, is_end: bool = False) -> StreamsException:
    """The exception for an error of a transaction, or of a record in one; `text` says what failed, and the reason.

    At its end (`is_end`) nothing that is not certain is taken for a batch that was not committed.
    """
    kind = _kind(error)
    found = kind(f"{text}. {_REMEDIES[kind]}")
    if error is not None and kind is ProducerException:
        known = translated(error, text, address)
        if isinstance(known, BrokerNotAvailableException | ConfigException):
            found = known
    return abandoned(text, is_end) if is_end and not isinstance(found, _CLEAR) else found


def abandoned(text: str, is_end: bool) -> TaskMigratedException:
    """The exception for a transaction that is left as it is; its successor's start ends it, if the brokers have not."""
    known = "Whether it was committed is not known, so " if is_end else "It was not committed; "
    return TaskMigratedException(f"{text}. {known}{_REVIVED}")


def _kind(error: KafkaError | None) -> type[StreamsException]:
    found: type[StreamsException] = ProducerException
    if error is None:
        return found
    code = error.code()
    if code in _FENCING:
        lost = BrokerNotAvailableException if error.txn_requires_abort() else UntoldException
        found = ProducerFencedException if error.fatal() else lost
    elif is_echo(error):
        found = UntoldException
    elif code in _STALE:
        found = StaleMemberException
    elif code in _EXPELLED:
        found = TaskMigratedException
    elif code in _PASSING:
        found = BrokerNotAvailableException
    elif code == KafkaError.UNKNOWN:
        found = BrokerFailedException
    return found
