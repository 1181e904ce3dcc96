"""What a processor of a user's own can ask of its task: forwarding, stores, schedules, where a record came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.processors.user_processors.declared_types import ValueCodec
from streams_runtime.processors.user_processors.processor_call import CurrentCall, Forwarded
from streams_runtime.processors.user_processors.processor_records import (
    Headers,
    ProcessorRecord,
    PunctuationType,
    RecordMetadata,
)
from streams_runtime.processors.user_processors.punctuation_queue import Callback, PunctuationQueue, Schedule
from streams_runtime.processors.user_processors.record_batches import forwarded_batch
from streams_runtime.processors.user_processors.stores.session_store_view import SessionStoreView
from streams_runtime.processors.user_processors.stores.state_store_view import StateStoreView
from streams_runtime.processors.user_processors.stores.window_store_view import WindowStoreView

_MILLISECOND = timedelta(milliseconds=1)
_INHERITED: Any = object()
StoreView = StateStoreView | WindowStoreView | SessionStoreView


@dataclass(frozen=True, slots=True)
class Declared:
    """What a step declares of what it forwards. `key` None: each record keeps its own."""

    value: ValueCodec
    key: ValueCodec | None = None
    outputs: Sequence[str] = ()


class ProcessorContext:
    """org.apache.kafka.streams.processor.api.ProcessorContext, of one task. Used by its thread alone.

    It is the processor's from `init` to `close`.
    """

    def __init__(
        self,
        task_id: str,
        current: CurrentCall,
        stores: Mapping[str, StoreView],
        declared: Declared,
        queue: PunctuationQueue,
        clock: Callable[[], int],
    ) -> None:
        """`clock` gives ms."""
        self.task_id = task_id
        """As Kafka Streams writes it, such as 0_1."""
        self._stores, self._declared, self._queue, self._clock = stores, declared, queue, clock
        self._current = current

    def state_store(self, name: str) -> Any:
        """The step's store of this name: a StateStoreView, or a WindowStoreView or SessionStoreView as it is declared.

        Raises LookupError: the step declares none; the message names the nearest.
        """
        if name not in self._stores:
            raise LookupError(f"the step declares no store {name!r}; {suggestion(name, self._stores)}")
        return self._stores[name]

    def forward(
        self,
        value: ProcessorRecord | Mapping[str, Any] | None,
        *,
        key: Any = _INHERITED,
        timestamp: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
        to: str | None = None,
    ) -> None:
        """Give a record to the steps behind: a ProcessorRecord, or a value (None: a tombstone).

        `to` names the output that it goes to (forward of a childName); without it all outputs get it.

        What is left out is that of the record that is being processed. A punctuator has none: it gives a key, and its
        record has the time that the punctuator was called with.

        Raises:
            TypeError, ValueError: key or value is not of the declared type, or the step declares no key and this one is
                another than the record's.
            LookupError: the step declares no output of the name `to`; the message names the nearest.
            RuntimeError: called in init or close, where nothing can be forwarded, or in process_batch.
        """
        call = self._current.now
        if call.batch is not None:
            raise RuntimeError("forward is for single records; in process_batch give rows to forward_batch")
        if call.forwarded is None:
            raise RuntimeError("forward is for process and for punctuators: init and close have no record")
        if isinstance(value, ProcessorRecord):
            key = value.key if key is _INHERITED else key
            timestamp = value.timestamp if timestamp is None else timestamp
            headers = value.headers if headers is None else headers
            value = value.value
        if timestamp is None:
            timestamp = call.time
        if isinstance(timestamp, bool) or not isinstance(timestamp, int) or not 0 <= timestamp < 2**63:
            raise ValueError(f"a record of the time {timestamp!r}; give milliseconds since 1970, from 0")
        own = () if call.record is None else call.record.headers
        kept = own if headers is None else _headers(headers)
        given = None if value is None else self._checked(self._declared.value, value, "value")
        output = None if to is None else self._output(to)
        call.forwarded.append(Forwarded(self._key_of(key, call.record), given, timestamp, kept, output))

    def forward_batch(self, batch: pa.RecordBatch | pa.Table, *, to: str | None = None) -> None:
        """Give rows to the steps behind, in process_batch: the columns that the step declares, and `_row`.

        `_row` says which row of the given batch each comes of; `_key`, `_timestamp`, `_headers` and `_tombstone` are
        those of that record where they are left out. `to` is as in `forward`.

        Raises:
            TypeError, ValueError: it is no batch, or a column is missing, unknown, or not of the declared type.
            LookupError: the step declares no output of the name `to`; the message names the nearest.
            RuntimeError: called elsewhere than in process_batch.
        """
        call = self._current.now.batch
        if call is None:
            raise RuntimeError("forward_batch is for process_batch; process and punctuators give records to forward")
        declared = self._declared
        key = None if declared.key is None else declared.key.kind
        output = None if to is None else self._output(to)
        call.forwarded.append(forwarded_batch(batch, call.given, declared.value.kind, key, output))

    def schedule(self, every: timedelta, type: PunctuationType, callback: Callback) -> Schedule:
        """Call `callback` with the time in ms, again and again; the result can be cancelled (Cancellable).

        By stream time it is called behind the record with which that comes to a multiple of `every`, first behind the
        first one. Call it in `init`: then a task that goes on elsewhere goes on with the schedule where it was.

        Raises:
            ValueError: `every` is less than a millisecond.
            RuntimeError: it is not called in init.
        """
        if not self._current.now.is_init:
            raise RuntimeError("schedule is for init: what is scheduled later would be gone when the task moves")
        milliseconds = every // _MILLISECOND
        if milliseconds < 1:
            raise ValueError(f"an interval of {every}; give at least a millisecond")
        return self._queue.add(milliseconds, PunctuationType(type), callback, self._clock())

    def record_metadata(self) -> RecordMetadata | None:
        """Where the record that is being processed was read; None in init, close and punctuators."""
        return self._current.now.metadata

    def current_stream_time_ms(self) -> int:
        """The largest timestamp of all records that the task has read, this one included; -1 before the first."""
        return self._current.now.stream_time

    def current_system_time_ms(self) -> int:
        """The machine's clock; of a TopologyTestDriver the test's."""
        return self._clock()

    def _output(self, name: str) -> int:
        outputs = self._declared.outputs
        if not outputs:
            raise LookupError(f"forward to {name!r}, and the step declares no outputs; declare them, or leave to out")
        if name not in outputs:
            raise LookupError(f"the step declares no output {name!r}; {suggestion(name, outputs)}")
        return outputs.index(name)

    def _key_of(self, key: Any, record: ProcessorRecord | None) -> pa.Array | None:
        if self._declared.key is not None:
            if key is _INHERITED:
                if record is None:
                    raise TypeError("a punctuator has no record whose key this one could have; give key=…")
                key = record.key
            return self._checked(self._declared.key, key, "key")
        if record is None:
            raise TypeError("a punctuator has no record whose key could stay; declare process.key, and give key=…")
        if key is not _INHERITED and key != record.key:
            raise ValueError(f"the key {key!r} in place of {record.key!r}; declare process.key, so that it may change")
        return None

    def _checked(self, codec: ValueCodec, value: Any, part: str) -> pa.Array:
        try:
            return codec.checked(value)
        except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(f"the {part} that is forwarded is not of its declared type: {reason}") from None


def _headers(given: Iterable[tuple[str, bytes | None]]) -> Headers:
    made = tuple((name, value) for name, value in given)
    for name, value in made:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes)):
            raise TypeError(f"the header {name!r} with {value!r}; a header has a text for its name, and bytes or None")
    return made
