"""Records as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message
from numpy.typing import NDArray

RAW_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
"""Of records as a topic has them."""

LATEST_TIME = 10**14 - 1
"""The last time (ms since 1970) that a record may have, in the year 5138. The first one is 0, as in Kafka Streams.

Whatever windows add to it, Spark's microseconds and Python's datetimes hold the sum (see
api.spec.spec_values.LONGEST_DURATION). Microseconds or nanoseconds that were written as milliseconds lie beyond it.
"""
_SHOWN_TIME = 4 * 10**15  # ms; what lies further out is shown as this, so that expressions can add to it

_FIELD: Mapping[str, Callable[[Message], Any]] = {
    "key": Message.key,
    "value": Message.value,
    "topic": Message.topic,
    "partition": Message.partition,
    "offset": Message.offset,
    "headers": Message.headers,
}


def record_column(messages: Sequence[Message], name: str) -> list[Any] | NDArray[Any]:
    """A column of RAW_SCHEMA. The loops over the records stay in C."""
    match name:
        case "partition" | "offset":
            return np.fromiter(map(_FIELD[name], messages), np.int64, len(messages))
        case "timestamp":
            # Each is two numbers, what kind of time it is and the time in ms.
            both = np.fromiter(chain.from_iterable(map(Message.timestamp, messages)), np.int64, 2 * len(messages))
            return microseconds(both[1::2])
        case _:
            return list(map(_FIELD[name], messages))


def microseconds(milliseconds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times of records in the unit of RAW_SCHEMA. No record has to have a time that makes sense."""
    return np.clip(milliseconds, -_SHOWN_TIME, _SHOWN_TIME) * 1000


def record_table(messages: Sequence[Message]) -> pa.Table:
    """The records, in their order, with RAW_SCHEMA."""
    columns = [pa.array(record_column(messages, field.name), field.type) for field in RAW_SCHEMA]
    return pa.table(columns, schema=RAW_SCHEMA)
