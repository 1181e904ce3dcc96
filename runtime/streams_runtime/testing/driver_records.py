"""A record as a test sees it, and the moments in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from streams_runtime.batch.encode import Headers
from streams_runtime.query.wire.windowed_keys import Moment, last_ms

START = datetime(2024, 1, 1, tzinfo=UTC)
"""The time of the first record of an input topic, unless the test says otherwise: the same in every run."""

HeadersGiven = Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True)
class Record:
    """One record, with key and value as Python objects (TestRecord, KIP-470); the value None is a tombstone.

    A record that was read has a UTC datetime as its timestamp. One that is piped may have ms since 1970, or None: its
    topic's time; also a time that no record should have, such as -1. Header values are bytes. Two records are equal
    whatever their partitions.
    """

    key: object
    value: object
    timestamp: Moment | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = field(default=None, compare=False)


def ms_of(timestamp: Moment) -> int:
    """A moment in ms since 1970. Raises ValueError for one without a time zone."""
    return last_ms("timestamp", timestamp)


def headers_of(given: HeadersGiven) -> Headers | None:
    """Headers as a topic has them; text becomes UTF-8, and no headers are None."""
    pairs = given.items() if isinstance(given, Mapping) else given
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs] or None
