"""Records that librdkafka still holds, as Arrow columns: each is made, as a copy, when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streams_runtime.kafka.client.librdkafka import message_headers
from streams_runtime.kafka.consumer.message_columns import Messages, bytes_at, may_have_headers, timestamps_of
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA, microseconds

_TYPES = {field.name: field.type for field in RAW_SCHEMA}


@dataclass(slots=True)
class Records:
    """Records of one topic. Columns may be asked for until the next ones are; what was made of them stays."""

    topic: str
    _messages: Messages | None

    def __len__(self) -> int:
        return len(self._held)

    def column(self, name: str) -> pa.Array:
        """A column of RAW_SCHEMA. Raises ValueError: the records were given back, make columns before that."""
        held = self._held
        match name:
            case "key":
                found = bytes_at(held.keys, held.key_lengths)
            case "value":
                found = bytes_at(held.values, held.value_lengths)
            case "topic":
                found = pa.repeat(pa.scalar(self.topic), len(held))
            case "partition":
                found = pa.array(held.partitions)
            case "offset":
                found = pa.array(held.offsets)
            case "timestamp":
                found = pa.array(microseconds(timestamps_of(held.addresses)))
            case "headers":
                return _headers(held)
            case _:
                raise KeyError(f"records have no column {name}; they have {', '.join(_TYPES)}")
        return found.cast(_TYPES[name])

    def give_back(self) -> None:
        """Tell that the messages are freed: no column is made any more."""
        self._messages = None

    @property
    def _held(self) -> Messages:
        if self._messages is None:
            raise ValueError("these records were given back when the next ones were asked for: make columns before")
        return self._messages


def _headers(messages: Messages) -> pa.Array:
    asked = np.flatnonzero(may_have_headers(messages))
    if not len(asked):
        return pa.nulls(len(messages), _TYPES["headers"])
    found: list[Any] = [None] * len(messages)
    for row, address in zip(asked.tolist(), messages.addresses[asked].tolist(), strict=True):
        found[row] = message_headers(address)
    return pa.array(found, _TYPES["headers"])
