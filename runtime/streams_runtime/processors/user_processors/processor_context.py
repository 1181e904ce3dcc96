"""What a processor of a user's own can ask of its task: forwarding, stores, schedules, where a record came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.processors.user_processors.declared_types import ValueCodec
from streams_runtime.processors.user_processors.processor_records import (
    Headers,
    ProcessorRecord,
    PunctuationType,
    RecordMetadata,
)
from streams_runtime.processors.user_processors.punctuation_queue import Callback, PunctuationQueue, Schedule
from streams_runtime.processors.user_processors.state_store_view import StateStoreView

_MILLISECOND = timedelta(milliseconds=1)
_INHERITED: Any = object()


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A record that was forwarded. `key` and `value` are columns of one row; None: the record's own key, no value."""

    key: pa.Array | None
    value: pa.Array | None
    timestamp: int
    headers: Headers


class ProcessorContext:
    """org.apache.kafka.streams.processor.api.ProcessorContext, of one task. Used by its thread alone.

    It is the processor's from `init` to `close`.
    """

    def __init__(
        self,
        task_id: str,
        stores: Mapping[str, StateStoreView],
        value: ValueCodec,
        key: ValueCodec | None,
        queue: PunctuationQueue,
        clock: Callable[[], int],
    ) -> None:
        """`value` and `key` are what is forwarded; `key` None: each record keeps its own. `clock` gives ms."""
        self.task_id = task_id
        """As Kafka Streams writes it, such as 0_1."""
        self._stores, self._value, self._key, self._queue, self._clock = stores, value, key, queue, clock
        self._is_init = False
        self._record: ProcessorRecord | None = None
        self._metadata: RecordMetadata | None = None
        self._time = 0
        self._stream_time = -1
        self._forwarded: list[Forwarded] | None = None

    def state_store(self, name: str) -> StateStoreView:
        """The step's store of this name. Raises LookupError: the step declares none; the message names the nearest."""
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
    ) -> None:
        """Give a record to the steps behind: a ProcessorRecord, or a value (None: a tombstone).

        What is left out is that of the record that is being processed. A punctuator has none: it gives a key, and its
        record has the time that the punctuator was called with.

        Raises:
            TypeError, ValueError: key or value is not of the declared type, or the step declares no key and this one is
                another than the record's.
            RuntimeError: called in init or close, where nothing can be forwarded.
        """
        if self._forwarded is None:
            raise RuntimeError("forward is for process and for punctuators: init and close have no record")
        if isinstance(value, ProcessorRecord):
            key = value.key if key is _INHERITED else key
            timestamp = value.timestamp if timestamp is None else timestamp
            headers = value.headers if headers is None else headers
            value = value.value
        if timestamp is None:
            timestamp = self._time
        if isinstance(timestamp, bool) or not isinstance(timestamp, int) or not 0 <= timestamp < 2**63:
            raise ValueError(f"a record of the time {timestamp!r}; give milliseconds since 1970, from 0")
        own = () if self._record is None else self._record.headers
        kept = own if headers is None else _headers(headers)
        given = None if value is None else self._checked(self._value, value, "value")
        self._forwarded.append(Forwarded(self._key_of(key), given, timestamp, kept))

    def schedule(self, every: timedelta, type: PunctuationType, callback: Callback) -> Schedule:
        """Call `callback` with the time in ms, again and again; the result can be cancelled (Cancellable).

        By stream time it is called behind the record with which that comes to a multiple of `every`, first behind the
        first one. Call it in `init`: then a task that goes on elsewhere goes on with the schedule where it was.

        Raises:
            ValueError: `every` is less than a millisecond.
            RuntimeError: it is not called in init.
        """
        if not self._is_init:
            raise RuntimeError("schedule is for init: what is scheduled later would be gone when the task moves")
        milliseconds = every // _MILLISECOND
        if milliseconds < 1:
            raise ValueError(f"an interval of {every}; give at least a millisecond")
        return self._queue.add(milliseconds, PunctuationType(type), callback, self._clock())

    def record_metadata(self) -> RecordMetadata | None:
        """Where the record that is being processed was read; None in init, close and punctuators."""
        return self._metadata

    def current_stream_time_ms(self) -> int:
        """The largest timestamp of all records that the task has read, this one included; -1 before the first."""
        return self._stream_time

    def current_system_time_ms(self) -> int:
        """The machine's clock; of a TopologyTestDriver the test's."""
        return self._clock()

    def begin_init(self) -> None:
        """The user's init comes next."""
        self._is_init = True

    def end_init(self) -> None:
        """The user's init has returned."""
        self._is_init = False

    def begin(
        self,
        into: list[Forwarded],
        record: ProcessorRecord | None,
        metadata: RecordMetadata | None,
        time: int,
        stream_time: int,
    ) -> None:
        """A call of process, or of a punctuator, comes next, at this time (ms); what it forwards goes to `into`."""
        self._forwarded, self._record, self._metadata = into, record, metadata
        self._time, self._stream_time = time, stream_time
        for store in self._stores.values():
            store.at(time)

    def end(self) -> None:
        """It has returned, or failed."""
        self._forwarded = self._record = self._metadata = None

    def _key_of(self, key: Any) -> pa.Array | None:
        if self._key is not None:
            if key is _INHERITED:
                if self._record is None:
                    raise TypeError("a punctuator has no record whose key this one could have; give key=…")
                key = self._record.key
            return self._checked(self._key, key, "key")
        if self._record is None:
            raise TypeError("a punctuator has no record whose key could stay; declare process.key, and give key=…")
        if key is not _INHERITED and key != self._record.key:
            raise ValueError(
                f"the key {key!r} in place of {self._record.key!r}; declare process.key, so that it may change"
            )
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
