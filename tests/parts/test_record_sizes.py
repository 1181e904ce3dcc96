"""How large librdkafka takes a record for: the largest that it hands over, and one byte more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from streams_runtime.kafka.producer.topic_limits import handed_over_bytes

LARGEST = 2000


@pytest.fixture(scope="module")
def producer() -> Iterator[Producer]:
    made = Producer({"bootstrap.servers": "127.0.0.1:1", "message.max.bytes": str(LARGEST), "log_level": "0"})
    yield made
    made.purge()
    made.flush(5)


@pytest.mark.parametrize("key", [None, b"", b"k" * 150])
@pytest.mark.parametrize(
    "headers",
    [None, [("a", None)], [("name", b"x" * 200), ("other", "text"), ("ü", b"")]],
    ids=["none", "null", "some"],
)
def test_the_largest_record_that_librdkafka_takes_is_known(producer: Producer, key: bytes | None, headers: Any) -> None:
    room = LARGEST - handed_over_bytes(key, None, headers)
    producer.produce("t", b"v" * room, key, headers=headers)
    with pytest.raises(KafkaException) as failure:
        producer.produce("t", b"v" * (room + 1), key, headers=headers)
    assert failure.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
