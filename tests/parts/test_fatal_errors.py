"""A producer's fatal error comes out of flush() as what it is, whatever librdkafka logs and reports after it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from failed_producers import LINES, MOCK, fail_with_a_record_on_its_way

from streams_runtime.kafka.client.librdkafka_errors import QuietLog, error_of
from streams_runtime.kafka.producer.delivery_reports import Failures
from streams_runtime.kafka.producer.uncertain_requests import Doubts

CODE = KafkaError.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("level", [logging.DEBUG, logging.WARNING])
@pytest.mark.parametrize("log", [QuietLog, Doubts])
def test_lines_of_the_log_after_a_fatal_error_do_not_change_it(
    log: Callable[[], QuietLog], level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level, "streams_runtime.kafka.client.librdkafka")
    caplog.handler.setLevel(logging.CRITICAL)  # a thousand lines, which are shown with a failure
    check_fatal(Producer({**MOCK, **LINES}, logger=log()))


def test_nor_do_reports_on_records() -> None:
    check_fatal(Producer({**MOCK, "on_delivery": Failures().note}, logger=QuietLog()))


def check_fatal(producer: Producer) -> None:
    """Let the producer fail for good while a record is on its way, and flush it."""
    fail_with_a_record_on_its_way(producer, CODE)
    with pytest.raises(KafkaException) as caught:
        producer.flush(5)
    error = error_of(caught.value)
    assert error is not None
    assert (error.fatal(), error.code()) == (True, CODE)
