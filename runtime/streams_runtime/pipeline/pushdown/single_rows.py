"""Records that are handed on one by one: to a join, filtered and selected from, or to a table, as they came."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import NULL_VALUE, ORDER_TIME, ORDINAL, OUT_KEY, OUT_TIME, OUT_VALUE
from streams_runtime.batch.stream_times import StreamTimes
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.metrics.sampled import NOTHING, Spread
from streams_runtime.pipeline.formats.json_read import JsonReader
from streams_runtime.pipeline.pushdown.arrow_plans import RowPlan
from streams_runtime.pipeline.pushdown.scanned_records import (
    METADATA,
    PARTITION,
    Answer,
    Column,
    Formats,
    Left,
    formats_of,
)

_READ_HERE = frozenset({*METADATA, OUT_KEY, NULL_VALUE, ORDER_TIME})


class _InOrder(ABC):
    """A stage whose rows are handed on in the order of their records."""

    __slots__ = ()

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Of the rows."""

    @abstractmethod
    def made_of(self, column: Column, before: StreamTimes) -> Made:
        """What is made of some records, behind those whose times are in `before`."""

    @property
    def whole_partitions(self) -> bool:
        """Whether a partition's records have to be read by one worker: when one's turn is goes by all before it."""
        return ORDER_TIME in self.schema.names

    def merges_stages(self, _most: int) -> Gathering:
        """Where records are taken in."""
        return Gathering(self)

    def together(self, parts: Sequence[pa.Table]) -> pa.Table:
        """One table of what was made of parts, in their order."""
        return pa.concat_tables(parts)


@dataclass(frozen=True, slots=True)
class RowStage(_InOrder):
    """What is handed on of a stream's records; `needs_keys`: only those with a key, the others are dropped.

    May be pickled, as TableStage may.
    """

    plan: RowPlan
    formats: Formats
    needs_keys: bool
    given: pa.Schema

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""
        return self.given

    def made_of(self, column: Column, before: StreamTimes) -> Made:
        """What is made of some records."""
        read = self.formats.read(column)
        whole = read.whole
        columns = read.columns(self.plan.reads - {ORDER_TIME}, self.formats.headers)
        order_times = None
        if ORDER_TIME in self.plan.reads:
            columns[ORDER_TIME] = order_times = before.order_times(column("partition"), read.times, whole)
        rows = self.plan.applied(_those(pa.table(columns), whole))
        keyless = rows[OUT_KEY].null_count if self.needs_keys else 0
        if keyless:
            rows = rows.filter(pc.is_valid(rows[OUT_KEY]))
        return Made(rows.cast(self.schema), whole, keyless, order_times, read.spread(whole))


@dataclass(frozen=True, slots=True)
class TableStage(_InOrder):
    """What a table has of its records: partition, key and value as bytes, time (ms), where each is, and headers and
    order times if wanted. Those without a key are there for their ordinals only.
    """

    formats: Formats
    order_times: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Of what is made."""
        own = [(PARTITION, pa.int32()), (OUT_KEY, pa.binary()), (OUT_TIME, pa.int64()), (OUT_VALUE, pa.binary())]
        beside = [(name, RAW_SCHEMA.field(METADATA[name]).type) for name in self._beside]
        times = [(ORDER_TIME, RAW_SCHEMA.field("timestamp").type)] if self.order_times else []
        return pa.schema([*own, *beside, *times])

    def made_of(self, column: Column, before: StreamTimes) -> Made:
        """What is made of some records. A value that is not there deletes its key."""
        read = self.formats.read(column)
        whole = read.fitting(pc.or_(read.values_read, read.values.is_null()))
        times = pc.divide(read.times.cast(pa.int64()), 1000)
        beside = [read.times if name == "_timestamp" else column(METADATA[name]) for name in self._beside]
        order_times = before.order_times(column("partition"), read.times, whole) if self.order_times else None
        beside += [] if order_times is None else [order_times]
        all_ = pa.table([column("partition"), read.raw_keys, times, read.values, *beside], schema=self.schema)
        rows = _those(all_, whole)
        return Made(rows, whole, rows[OUT_KEY].null_count, order_times, read.spread(whole))

    @property
    def _beside(self) -> tuple[str, ...]:
        return (*ORDINAL, *(("_headers",) if self.formats.headers else ()))


@dataclass(frozen=True, slots=True)
class Made:
    """What was made of some records, of which of them, how many lacked a needed key, the order times of all, and the
    times of those of which something was made.
    """

    rows: pa.Table
    here: pa.BooleanArray
    dropped: int
    order_times: pa.Array | None
    times: Spread


@dataclass(slots=True)
class Gathering:
    """Records on their way to an answer."""

    stage: _InOrder
    _rows: list[pa.Table] = field(default_factory=list)
    _left: Left = field(default_factory=Left)
    _before: StreamTimes = field(default_factory=StreamTimes)
    _records: int = 0
    _dropped: int = 0
    _times: Spread = NOTHING

    def take(self, column: Column) -> None:
        """Take in some records. `column` is asked for the columns that are needed."""
        made = self.stage.made_of(column, self._before)
        here = made.here.true_count
        if here < len(made.here):
            self._left.take(column, pc.invert(made.here), made.order_times)
        self._records += here
        self._dropped += made.dropped
        self._times += made.times
        self._rows.append(made.rows)

    def answer(self) -> Answer:
        """What has become of all of them."""
        rows = pa.concat_tables([self.stage.schema.empty_table(), *self._rows])
        done = not self._left.too_many
        return Answer(rows, self._left.table, self._records, self._dropped, done, times=self._times)


def row_stage_of(
    plan: RowPlan, key_format: str, json: JsonReader | None, needs_keys: bool, headers: bool, schema: pa.Schema
) -> RowStage | None:
    """A stage; None where keys or values are of a format that only Spark reads, or the plan reads something else."""
    formats = formats_of(key_format, json, headers)
    if formats is None or not plan.reads <= _READ_HERE | set(formats.json.schema.names):
        return None
    return RowStage(plan, formats, needs_keys, schema)


def table_stage_of(key_format: str, json: JsonReader | None, headers: bool, order_times: bool) -> TableStage | None:
    """A stage; None where keys or values are of a format that only Spark reads."""
    formats = formats_of(key_format, json, headers)
    return None if formats is None else TableStage(formats, order_times)


def _those(rows: pa.Table, some: pa.BooleanArray) -> pa.Table:
    """Some of the rows, as a copy, also where it is all of them.

    What they lie in as they were read has more room than they take; kept until the answer, that was 400 MiB and more of
    an instance.
    """
    return rows.filter(some)
