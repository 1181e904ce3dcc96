"""A producer's fatal error comes out of flush() as what it is, whatever librdkafka logs and reports after it."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from streams_runtime.kafka import librdkafka
from streams_runtime.kafka.doubts import Doubts
from streams_runtime.kafka.foreign import QuietLog, error_of
from streams_runtime.kafka.reports import Failures

_fail = librdkafka._function(
    librdkafka._waiting, "test_fatal_error", ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
)
# librdkafka's own broker, in this process, whose answers take so long that flush() has to look several times.
MOCK = {
    "bootstrap.servers": "mock",
    "test.mock.num.brokers": 1,
    "test.mock.broker.rtt": 400,
    "linger.ms": 0,
    "enable.idempotence": True,
}


@pytest.mark.parametrize("level", [logging.DEBUG, logging.WARNING])
@pytest.mark.parametrize("log", [QuietLog, Doubts])
def test_lines_of_the_log_after_a_fatal_error_do_not_change_it(
    log: Callable[[], QuietLog], level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level, "streams_runtime.kafka.librdkafka")
    caplog.handler.setLevel(logging.CRITICAL)  # a thousand lines, which are shown with a failure
    check_fatal(Producer({**MOCK, "debug": "all", "log_level": 7}, logger=log()))


def test_nor_do_reports_on_records() -> None:
    check_fatal(Producer({**MOCK, "on_delivery": Failures().note}, logger=QuietLog()))


def check_fatal(producer: Producer) -> None:
    """Let the producer fail for good while a record is on its way, and flush it."""
    producer.produce("topic", b"connects")
    assert producer.flush(30) == 0
    producer.produce("topic", b"on its way")
    assert _fail(librdkafka._handle_of(producer), KafkaError.INVALID_PRODUCER_EPOCH, b"for a test") == 0
    with pytest.raises(KafkaException) as caught:
        producer.flush(5)
    error = error_of(caught.value)
    assert error is not None
    assert (error.fatal(), error.code()) == (True, KafkaError.INVALID_PRODUCER_EPOCH)
