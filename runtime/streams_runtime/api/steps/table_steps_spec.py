"""Steps that make a table of a stream, and a stream of a table."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration

HISTORY = (
    "Keeps what each key had, for so long back in stream time (a versioned store, KIP-889), such as 1h. Streams are"
    " joined with the row that was valid at their records' times, and queries may ask for one of an earlier time."
    " Nothing else may follow such a table. Absent: only the last value is kept."
)
"""What `historyRetention` means, of a source's table and of a toTable alike."""


class ToTableSpec(Model):
    """Keeps the last value of each key of a stream."""

    store: str = Field(
        description="Name of the key-value store that holds the table. No default: a made-up name changes when steps"
        " are added."
    )
    history_retention: Duration | None = Field(default=None, description=HISTORY)


class SuppressBufferSpec(Model):
    """How much may wait in a buffer of a task, and what happens where it is full."""

    records: int | None = Field(
        default=None,
        ge=1,
        le=(1 << 53) - 1,
        description="How many keys may have a change that waits. Absent: any number.",
    )
    bytes: int | None = Field(
        default=None,
        ge=1,
        le=(1 << 53) - 1,
        description="How many bytes these changes may have, with their keys and headers. Absent: any number.",
    )
    full: Literal["emitEarly", "fail"] = Field(
        default="emitEarly",
        description="emitEarly: the oldest changes go on before their time. fail: the application stops, and names the"
        " step.",
    )


class SuppressSpec(Model):
    """Holds each key's changes back for a while, and passes on the last of them."""

    within: Duration = Field(
        description="How long, in stream time, the first change of a key waits for more. Later ones replace it and make"
        " the time no longer."
    )
    buffer: SuppressBufferSpec | None = Field(
        default=None,
        description="Bounds of what waits: records, bytes or both. Absent: none.",
    )


class ToStreamSpec(Model):
    """Takes a table's changes as records: all of them ({}), or with suppress the last of those that lie together."""

    suppress: SuppressSpec | None = Field(
        default=None,
        description="Of the changes of one key within a time only the last becomes a record (Kafka Streams'"
        " untilTimeLimit). Absent: each change does.",
    )
