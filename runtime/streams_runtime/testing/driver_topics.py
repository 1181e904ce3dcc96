"""The ends of a topology in a test: topics to pipe records into, and topics to read from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from streams_runtime.errors import IllegalStateException
from streams_runtime.query.wire.windowed_keys import Moment, moment
from streams_runtime.testing.driver_records import HeadersGiven, Record, headers_of, ms_of
from streams_runtime.testing.memory_topics import Logged
from streams_runtime.testing.mock_producer import Sent
from streams_runtime.testing.record_formats import Decoders, Encode

Given = Record | Sequence[Any]
"""A Record, or what `InputTopic.pipe` takes: (key, value), (key, value, timestamp), …"""


class InputTopic:
    """Pipes records into a source's topic, in the formats that the source declares (TestInputTopic, KIP-470).

    Values of `json` are dicts by the columns of the schema, those of other formats what their name says. None is a
    tombstone, and no key. bytes are written as they are, whatever the format: a test can so give a record that can't be
    read. Records without a timestamp have the topic's own time, which only the test moves.
    """

    def __init__(
        self,
        topic: str,
        encoders: tuple[Encode, Encode],
        partitions: int,
        pipe: Callable[[Sequence[Sent]], None],
        start: datetime,
        auto_advance: timedelta,
    ) -> None:
        """Made by TopologyTestDriver.input_topic; `encoders` are those of keys and of values."""
        self._topic = topic
        self._encode_key, self._encode_value = encoders
        self._partitions = partitions
        self._pipe = pipe
        self._time = start
        self._auto_advance = auto_advance

    @property
    def time(self) -> datetime:
        """The time of the next record that is piped without one."""
        return self._time

    def advance(self, by: timedelta) -> None:
        """Move the topic's time on (TestInputTopic#advanceTime). It processes nothing: stream time is that of records.

        Raises:
            ValueError: `by` is negative; pipe a record with a timestamp.
        """
        if by < timedelta(0):
            raise ValueError(
                f"the time of {self._topic} can't go back by {-by}; pipe a record with a timestamp instead"
            )
        self._time += by

    def pipe(
        self,
        key: object,
        value: object,
        timestamp: Moment | None = None,
        headers: HeadersGiven = (),
        partition: int | None = None,
    ) -> None:
        """Pipe one record, and process it as a batch of its own, with all that it causes (TestInputTopic#pipeInput).

        `timestamp` is an aware datetime, or ms since 1970; None: the topic's time. `partition` None: the key decides,
        and records without a key take turns.

        Raises:
            SerdeException: key or value do not fit the format or its schema; nothing was piped.
            ValueError: there is no such partition, or the timestamp has no time zone; nothing was piped.
            IllegalStateException: the driver is closed; make another one.
            StreamsException: what ends a batch in the runtime too, such as DeserializationException while the policy is
                `fail`. Nothing of the batch was written, and it is forgotten; the driver goes on.
        """
        self.pipe_all([(key, value, timestamp, headers, partition)])

    def pipe_all(self, records: Iterable[Given]) -> None:
        """Pipe records in order, and process them as one batch (TestInputTopic#pipeRecordList).

        Each is a Record or a tuple of what `pipe` takes. Raises as `pipe` does; when one of them does not fit, none is
        piped.
        """
        time, sent = self._time, []
        for each in records:
            given = (
                (each.key, each.value, each.timestamp, each.headers, each.partition)
                if isinstance(each, Record)
                else each
            )
            sent.append(self._sent(time, *given))
            if len(given) < 3 or given[2] is None:
                time += self._auto_advance
        self._time = time
        self._pipe(sent)

    def _sent(
        self,
        time: datetime,
        key: object,
        value: object,
        timestamp: Moment | None = None,
        headers: HeadersGiven = (),
        partition: int | None = None,
    ) -> Sent:
        if partition is not None and not 0 <= partition < self._partitions:
            raise ValueError(
                f"{self._topic} has no partition {partition}: it has {self._partitions}, numbered from 0; say how many"
                " it has when you make the driver (partitions=…)"
            )
        ms = ms_of(time if timestamp is None else timestamp)
        return Sent(self._topic, partition, self._encode_key(key), self._encode_value(value), ms, headers_of(headers))


class OutputTopic:
    """Reads what a topology wrote to a topic, each record once (TestOutputTopic, KIP-470).

    Formats are those of its sinks. Values of `json` are dicts, those of other formats what their name says, and None is
    a tombstone. Keys of windows and sessions are Windowed. Dead letters are bytes.
    """

    def __init__(self, topic: str, decoders: Decoders, unread: deque[Logged]) -> None:
        """Made by TopologyTestDriver.output_topic."""
        self._topic = topic
        self._decoders = decoders
        self._unread = unread

    @property
    def empty(self) -> bool:
        """Whether the test has read all records (TestOutputTopic#isEmpty)."""
        return not self._unread

    def read(self) -> Record:
        """Return the next record (TestOutputTopic#readRecord).

        Raises:
            IllegalStateException: every record was read; look at `empty` first.
        """
        if not self._unread:
            raise IllegalStateException(f"{self._topic} has no record that was not read yet; look at `empty` before")
        it = self._unread.popleft()
        key = None if it.key is None else self._decoders.key(it.key)
        value = None if it.value is None else self._decoders.value(it.value)
        headers = tuple((name, text.encode() if isinstance(text, str) else text) for name, text in it.headers or ())
        return Record(key, value, moment(it.timestamp), headers, it.partition)

    def read_all(self) -> list[Record]:
        """Return the records that were not read yet, in the order of their writing (TestOutputTopic#readRecordsToList).

        It raises nothing where there is none: the list is empty.
        """
        return [self.read() for _ in range(len(self._unread))]

    def read_latest_by_key(self) -> dict[Any, Any]:
        """Return each key's last value among the records that were not read yet (TestOutputTopic#readKeyValuesToMap).

        None is a tombstone. Raises TypeError where keys are JSON objects, which no dict takes: use `read_all`.
        """
        return {record.key: record.value for record in self.read_all()}
