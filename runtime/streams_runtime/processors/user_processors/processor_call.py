"""The call of a user's code that a task is in: what its context and its stores go by."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from streams_runtime.processors.user_processors.processor_records import Headers, ProcessorRecord, RecordMetadata
from streams_runtime.processors.user_processors.record_batches import BatchCall


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A record that was forwarded. `key` and `value` are columns of one row; None: the record's own key, no value.

    `output` is the number of the output that it goes to; None: to whatever takes the step's records.
    """

    key: pa.Array | None
    value: pa.Array | None
    timestamp: int
    headers: Headers
    output: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call: its time and the task's stream time (ms), and the record, or batch of records, that it is about.

    Single records that it forwards go to `forwarded`; None: it can't forward any.
    """

    time: int = 0
    stream_time: int = -1
    record: ProcessorRecord | None = None
    metadata: RecordMetadata | None = None
    forwarded: list[Forwarded] | None = None
    is_init: bool = False
    batch: BatchCall | None = None


@dataclass(slots=True)
class CurrentCall:
    """The call of a task: the task sets it, context and stores read it."""

    now: Call
