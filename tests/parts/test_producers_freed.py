"""A producer that has failed is freed where it is discarded, with a limit of time: what it raised does not keep it."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from failed_producers import LINES, MOCK, fail, fail_with_a_record_on_its_way

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.producer.batch_producer import _dispose
from streams_runtime.kafka.producer.transactions import TransactionalProducer
from streams_runtime.kafka.producer.uncertain_requests import Doubts
from streams_runtime.kafka.types import TopicPartition


class Watched(Producer):
    """One that weak references may point to."""


class Failed(TransactionalProducer):
    """Whose first librdkafka has failed for good."""

    def __init__(self) -> None:
        self.first: weakref.ref[Watched] | None = None
        super().__init__({"bootstrap.servers": "127.0.0.1:9"}, "test", "app-i-1")
        fail(self._producer)

    def _made(self) -> Producer:
        super()._made()
        made = Watched(self._config, logger=self._logger())
        self.first = self.first or weakref.ref(made)
        return made


def send(producer: TransactionalProducer) -> None:
    producer.send("topic", [b"k"], [b"v"], [1], 0)


STEPS: dict[str, Callable[[TransactionalProducer], None]] = {
    "initialise": TransactionalProducer.initialise,
    "send": send,
    "flush": TransactionalProducer.flush,
    "add_offsets": lambda producer: producer.add_offsets(
        {TopicPartition("topic", 0): 1}, Consumer({"group.id": "g"}).consumer_group_metadata()
    ),
    "commit": TransactionalProducer.commit,
}


@pytest.mark.parametrize("step", STEPS)
def test_what_a_step_raised_or_put_off_does_not_keep_a_producer_that_is_closed(step: str) -> None:
    producer = Failed()
    assert producer.first is not None
    try:
        STEPS[step](producer)
    except StreamsException:
        producer.close()
        assert producer.first() is None
    else:
        assert producer._untold is not None, "the step did not fail"
        producer.close()
        assert producer.first() is None


def test_what_a_line_of_the_log_raises_while_a_producer_is_disposed_of_does_not_keep_it() -> None:
    producer = Watched({**MOCK, **LINES}, logger=Doubts())
    fail_with_a_record_on_its_way(producer, KafkaError.INVALID_PRODUCER_EPOCH)
    watching, held = weakref.ref(producer), [producer]
    del producer
    _dispose(held)  # type: ignore[arg-type]
    assert watching() is None
