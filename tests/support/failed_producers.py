"""Producers of librdkafka that fail for good when a test wants it."""

from __future__ import annotations

import ctypes

from confluent_kafka import KafkaError, Producer

from streams_runtime.kafka.client import librdkafka

_fail = librdkafka._function(
    librdkafka._waiting, "test_fatal_error", ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
)
# librdkafka's own broker, in this process, whose answers take so long that flush() has to look several times.
MOCK = {
    "bootstrap.servers": "mock",
    "test.mock.num.brokers": 1,
    "test.mock.broker.rtt": 400,  # ms
    "linger.ms": 0,
    "enable.idempotence": True,
}
LINES = {"debug": "all", "log_level": 7}
"""With these it logs lines without end."""


def fail(producer: Producer, code: int = KafkaError._FENCED) -> None:
    """A fatal error, which the producer's next calls raise."""
    assert _fail(librdkafka._handle_of(producer), code, b"for a test") == 0


def fail_with_a_record_on_its_way(producer: Producer, code: int) -> None:
    """The same of a producer of MOCK that is busy."""
    producer.produce("topic", b"connects")
    assert producer.flush(30) == 0
    producer.produce("topic", b"on its way")
    fail(producer, code)
