"""Sending a file: nothing that was handed over is dropped, whatever ends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import pytest

from streams_runtime.cli.records.produce import _send
from streams_runtime.cli.records.record_files import Record, RecordFile
from streams_runtime.errors import ProducerException, StreamsException
from streams_runtime.kafka.producer.batch_producer import BatchProducer


class FakeProducer:
    """Counts what was handed over and what of it was flushed."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.sent = 0
        self.flushed = 0
        self._failure = failure

    def send(
        self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes | None], timestamps: Sequence[int]
    ) -> None:
        assert topic == "topic"
        assert len(keys) == len(values) == len(timestamps)
        if self._failure is not None:
            raise self._failure
        self.sent += len(keys)

    def flush(self) -> None:
        self.flushed = self.sent


def file_of(count: int, end: BaseException | None = None) -> RecordFile:
    def records() -> Iterator[Record]:
        yield from ((None, b"{}") for _ in range(count))
        if end is not None:
            raise end

    return RecordFile(records(), 100, lambda: 50)


def send(file: RecordFile, producer: FakeProducer, seen: list[int] | None = None) -> int:
    advance = (seen if seen is not None else []).append
    return _send(file, cast("BatchProducer", producer), "topic", None, advance)


def test_everything_is_flushed_and_progress_is_told_after_each_piece() -> None:
    producer = FakeProducer()
    seen: list[int] = []
    assert send(file_of(25_000), producer, seen) == 25_000
    assert producer.flushed == 25_000
    assert seen == [10_000, 20_000, 25_000]


def test_an_error_in_the_file_comes_after_what_stands_before_it_is_flushed() -> None:
    producer = FakeProducer()
    with pytest.raises(StreamsException, match=r"f:25001: bad. The topic topic has the first 20000 records"):
        send(file_of(25_000, StreamsException("f:25001: bad")), producer)
    assert producer.flushed == producer.sent == 20_000


def test_an_interruption_flushes_what_was_handed_over_and_says_how_much_that_is() -> None:
    producer = FakeProducer()
    with pytest.raises(StreamsException, match="interrupted: topic has at least the first 10000 records"):
        send(file_of(15_000, KeyboardInterrupt()), producer)
    assert producer.flushed == 10_000


def test_an_error_of_the_broker_is_passed_on_as_it_is() -> None:
    with pytest.raises(ProducerException, match="refused"):
        send(file_of(10), FakeProducer(ProducerException("refused")))
