"""What a processor of a user's own is given, and gives: records, where they came from, and what it schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

Headers = tuple[tuple[str, bytes | None], ...]


class PunctuationType(StrEnum):
    """By which time a callback is called."""

    STREAM_TIME = "stream-time"
    """The largest timestamp of the records that the task has read."""
    WALL_CLOCK_TIME = "wall-clock-time"
    """The machine's clock; of a TopologyTestDriver the one that a test advances."""


@dataclass(frozen=True, slots=True)
class ProcessorRecord:
    """A record (Record of org.apache.kafka.streams.processor.api): `timestamp` in ms.

    A `value` of None is a tombstone. Another value is a mapping of columns, a new one for each call: the processor may
    keep it and change it.
    """

    key: Any
    value: Mapping[str, Any] | None
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: Any) -> ProcessorRecord:
        """This record under another key; its value, time and headers stay."""
        return replace(self, key=key)

    def with_value(self, value: Mapping[str, Any] | None) -> ProcessorRecord:
        """This record with another value; its key, time and headers stay."""
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> ProcessorRecord:
        """This record at another time, in ms; all else stays."""
        return replace(self, timestamp=timestamp)

    def with_headers(self, headers: Headers) -> ProcessorRecord:
        """This record with other headers in place of its own."""
        return replace(self, headers=headers)


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """Where the record that is being processed was read (KIP-478)."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"
