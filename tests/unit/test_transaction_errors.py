"""What errors of transactions mean: to be done again, to be taken from the thread, or refused."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    ProducerException,
    ProducerFencedException,
    StreamsException,
    TaskMigratedException,
)
from streams_runtime.kafka.producer.transaction_errors import (
    BrokerFailedException,
    StaleMemberException,
    UntoldException,
    judged,
)

RECORD, ABORTABLE, FATAL = ({}, {"txn_requires_abort": True}, {"fatal": True})


@pytest.mark.parametrize(
    ("code", "how", "kind"),
    [
        (KafkaError._FENCED, FATAL, ProducerFencedException),
        (KafkaError.INVALID_PRODUCER_EPOCH, FATAL, ProducerFencedException),
        (KafkaError.INVALID_PRODUCER_EPOCH, ABORTABLE, BrokerNotAvailableException),
        (KafkaError.INVALID_PRODUCER_EPOCH, RECORD, UntoldException),
        (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, ABORTABLE, BrokerNotAvailableException),
        (KafkaError.ILLEGAL_GENERATION, ABORTABLE, StaleMemberException),
        (KafkaError.STALE_MEMBER_EPOCH, ABORTABLE, StaleMemberException),
        (KafkaError.UNKNOWN_MEMBER_ID, ABORTABLE, TaskMigratedException),
        (KafkaError.FENCED_INSTANCE_ID, ABORTABLE, TaskMigratedException),
        (KafkaError.FENCED_MEMBER_EPOCH, ABORTABLE, TaskMigratedException),
        (KafkaError._MSG_TIMED_OUT, RECORD, BrokerNotAvailableException),
        (KafkaError.COORDINATOR_NOT_AVAILABLE, ABORTABLE, BrokerNotAvailableException),
        (KafkaError._STATE, RECORD, UntoldException),
        (KafkaError._PURGE_QUEUE, RECORD, UntoldException),
        (KafkaError.MSG_SIZE_TOO_LARGE, RECORD, ProducerException),
        (KafkaError.UNKNOWN, FATAL, BrokerFailedException),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, FATAL, ConfigException),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ABORTABLE, ConfigException),
    ],
)
def test_an_error_is_told_by_its_code_and_by_whether_the_producer_survives_it(
    code: int, how: dict[str, bool], kind: type[StreamsException]
) -> None:
    found = judged(KafkaError(code, "why", **how), "committing a transaction of app-i-1 failed", "kafka:9092")
    assert type(found) is kind
    assert "committing a transaction of app-i-1 failed" in str(found)


def test_the_remedy_of_a_fenced_producer_is_to_end_the_other_process() -> None:
    assert "end that one" in str(judged(KafkaError(KafkaError._FENCED, "why", fatal=True), "x", "kafka:9092"))
    assert issubclass(ProducerFencedException, TaskMigratedException)
