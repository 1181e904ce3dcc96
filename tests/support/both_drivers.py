"""Records piped one by one into both projects' TopologyTestDriver, and what sinks have of them, in one form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from oracle_driver import Answer, KafkaStreams

from streams_runtime.query.stores.key_value_handle import Windowed
from streams_runtime.testing import Record

Piped = tuple[str, str | None, dict[str, Any] | None, int]
"""Topic, key, value and time (ms) of a record."""
Written = tuple[bytes | None, Any, int]
"""Key, value and time (ms) of a record of a sink."""

TUMBLING = {"tumbling": {"size": "10s", "grace": "5s"}, "retention": "15s"}
"""Windows of 10 s, as `as_written` tells them."""
SESSION = {"session": {"gap": "4s", "grace": "5s"}, "retention": "1h"}


def theirs(driver: KafkaStreams, told: Mapping[str, Any], records: Iterable[Piped]) -> Answer:
    asked = [
        {"topic": topic, "key": key, "value": value and json.dumps(value), "time": time}
        for topic, key, value, time in records
    ]
    return driver.answer(told, asked)


def as_written(record: Record) -> Written:
    """A record as the driver in Java tells it."""
    assert isinstance(record.timestamp, datetime)
    return _bytes(record.key), record.value, ms(record.timestamp)


def _bytes(key: Any) -> bytes | None:
    if isinstance(key, Windowed):
        start, end = (ms(each).to_bytes(8, "big") for each in key.window)
        is_session = (key.window.end - key.window.start).total_seconds() != 10
        return str(key.key).encode() + (end + start if is_session else start)
    return None if key is None else key.encode()


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def once_a_batch(written: Sequence[Written]) -> list[Written]:
    """Without what stands right before new contents of its key: here a batch writes a key once.

    Of sessions that is a deletion; of sliding windows the same record again, where the window that ends at a record is
    also the one right after the record before it.
    """
    nexts = [*written[1:], (None, None, 0)]
    return [
        row
        for row, after in zip(written, nexts, strict=True)
        if row != after and (row[1] is not None or row[0] != after[0])
    ]
