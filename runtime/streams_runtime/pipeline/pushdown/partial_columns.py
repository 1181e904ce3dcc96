"""Records become partial aggregates, in columns: in a worker of Spark's, or where the records are already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from streams_runtime.batch.columns import NULL_VALUE, OUT_KEY, OUT_RECORDS, OUT_TIME, OUT_WINDOW
from streams_runtime.batch.stream_times import StreamTimes
from streams_runtime.batch.vectors import integers
from streams_runtime.batch.window_bounds import bounds_of
from streams_runtime.metrics.sampled import NOTHING, Spread
from streams_runtime.pipeline.formats.json_read import JsonReader
from streams_runtime.pipeline.pushdown.arrow_plans import LISTED, Aggregate, Plan
from streams_runtime.pipeline.pushdown.scanned_records import PARTITION, Answer, Column, Formats, Left, formats_of
from streams_runtime.topology.nodes.window_kinds import TimeWindows, Windows

_ROWS = "_rows"
_GROUPED = 1_000_000  # rows that are put together at a time
_WITHIN = 2**62  # two sums below it are together in the range of BIGINT
_READ_HERE = frozenset({PARTITION, "_offset", "_timestamp", OUT_KEY, NULL_VALUE})
"""Columns of readable records beside the fields of their values that a plan may read."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What is made of a source's records, of each key or of each of its tumbling windows. May be pickled."""

    plan: Plan
    formats: Formats
    windows: TimeWindows | None = None

    @property
    def whole_partitions(self) -> bool:
        """Whether a partition's records have to be read by one worker: what is late goes by all before it."""
        return self.windows is not None

    @property
    def divided_by(self) -> tuple[str, ...]:
        """The columns whose values have partial aggregates of their own."""
        return (PARTITION, OUT_KEY) if self.windows is None else (PARTITION, OUT_KEY, OUT_WINDOW)

    def merges_stages(self, most: int) -> Gathering:
        """Where records are taken in, so many at most."""
        # What is late for a window goes by all records before it, those that Spark reads included.
        return Gathering(self, most, Left(0) if self.whole_partitions else Left())

    def together(self, parts: Sequence[pa.Table]) -> pa.Table:
        """One table of what was made of parts, which have no key in common unless a partition was cut."""
        parts = [each for each in parts if each.num_columns]
        numbers = [pc.unique(each[PARTITION]).to_pylist() for each in parts]
        if parts and len({number for each in numbers for number in each}) == sum(map(len, numbers)):
            return pa.concat_tables(parts)
        return together(parts, self)


def stage_of(plan: Plan, key_format: str, json: JsonReader | None, windows: Windows | None) -> Stage | None:
    """A stage; None where keys or values are of a format that only Spark reads, or the plan reads something else, or
    windows overlap.
    """
    tumbling = isinstance(windows, TimeWindows) and windows.size == windows.advance
    if windows is not None and not tumbling:
        return None
    formats = formats_of(key_format, json)
    if formats is None or not plan.reads <= _READ_HERE | set(formats.json.schema.names):
        return None
    return Stage(plan, formats, windows if isinstance(windows, TimeWindows) else None)


@dataclass(slots=True)
class Gathering:
    """Records on their way to an answer; `most`: how many there may be in all."""

    stage: Stage
    most: int
    _left: Left
    _rows: list[pa.Table] = field(default_factory=list)
    _partials: list[pa.Table] = field(default_factory=list)
    _records: int = 0
    _dropped: int = 0
    _late: int = 0
    _done: bool = True
    _times: Spread = NOTHING
    _stream_times: StreamTimes = field(default_factory=StreamTimes)
    """How far each partition has come (ms) by the records that its windows have met."""

    def take(self, column: Column) -> None:
        """Take in some records. `column` is asked for the columns that are needed."""
        read = self.stage.formats.read(column)
        whole = read.whole
        here = whole.true_count
        rows = pa.table(read.columns(self.stage.plan.reads))
        if here < len(whole):
            self._left.take(column, pc.invert(whole))
            rows = rows.filter(whole)
        self._records += here
        self._times += read.spread(whole)
        self._keep(rows)

    def answer(self) -> Answer:
        """What has become of all of them."""
        self._group()
        return Answer(
            together(self._partials, self.stage),
            self._left.table,
            self._records,
            self._dropped,
            self._done and not self._left.too_many,
            self._late,
            self._times,
        )

    def _keep(self, rows: pa.Table) -> None:
        plan = self.stage.plan
        kept = plan.rows.applied(rows)
        keyless = kept[OUT_KEY].null_count
        if keyless:
            self._dropped += keyless
            kept = kept.filter(pc.is_valid(kept[OUT_KEY]))
        self._done = self._done and not any(
            each.adds_integers and _largest(kept[each.name]) * self.most >= _WITHIN for each in plan.aggregates
        )
        if self.stage.windows is not None:
            kept = self._in_windows(kept, self.stage.windows)
        self._rows.append(kept)
        if sum(map(len, self._rows)) >= _GROUPED:
            self._group()

    def _in_windows(self, rows: pa.Table, windows: TimeWindows) -> pa.Table:
        """The rows that come in time, with the starts of their windows; see
        pipeline.windowing.window_frames.in_windows.
        """
        times = rows["_timestamp"].cast(pa.int64()).to_numpy() // 1000
        starts, ends = bounds_of(windows, times)
        come = self._stream_times.take(rows[PARTITION].to_numpy(), times)
        closed = ends + windows.grace <= come
        self._late += int(closed.sum())
        return rows.append_column(OUT_WINDOW, integers(starts)).filter(pa.array(~closed))

    def _group(self) -> None:
        if self._rows:
            rows, self._rows = pa.concat_tables(self._rows), []
            self._partials.append(_grouped(rows, self.stage))


def together(partials: Sequence[pa.Table], stage: Stage) -> pa.Table:
    """Partial aggregates of several sets of records, as one of all: each partition's key, or window, once."""
    if len(partials) == 1:
        return partials[0]
    if not partials:
        return pa.table({})
    aggregates = stage.plan.aggregates
    sums = [
        (each.name, "sum" if each.function == "count" else each.function, _AT_LEAST_ONE)
        for each in aggregates
        if each.function != "list"
    ]
    counted = [] if stage.windows is None else [(OUT_RECORDS, "sum", _AT_LEAST_ONE)]
    rows = pa.concat_tables(partials)
    made = _aggregated(rows, [*sums, (OUT_TIME, "max", None), *counted], stage)
    return _with_lists(made, {name: _joined(rows[name], made[_ROWS]) for name in _listed(stage)})


def fits_with(partials: pa.Table, aggregates: Sequence[Aggregate]) -> bool:
    """Whether sums of these partial aggregates stay in their range when another one's are added."""
    return not any(each.adds_integers and _largest(partials[each.name]) >= _WITHIN for each in aggregates)


_AT_LEAST_ONE = pc.ScalarAggregateOptions(min_count=1)
_ALL = pc.CountOptions(mode="all")


def _grouped(rows: pa.Table, stage: Stage) -> pa.Table:
    rows = rows.append_column(OUT_TIME, pc.divide(rows["_timestamp"].cast(pa.int64()), 1000))
    wanted = []
    for each in stage.plan.aggregates:
        match each.function, each.argument:
            case "count", None:
                rows = rows.append_column(each.name, rows[PARTITION])
                wanted.append((each.name, "count", _ALL))
            case "count", _:
                wanted.append((each.name, "count", None))
            case "list", _:
                pass
            case function, _:
                wanted.append((each.name, function, _AT_LEAST_ONE))
    if stage.windows is not None:
        rows = rows.append_column(OUT_RECORDS, rows[PARTITION])
        wanted.append((OUT_RECORDS, "count", _ALL))
    made = _aggregated(rows, [*wanted, (OUT_TIME, "max", None)], stage)
    return _with_lists(made, {name: _values(rows[name], rows["_offset"], made[_ROWS]) for name in _listed(stage)})


def _aggregated(rows: pa.Table, wanted: Sequence[tuple[str, str, pc.FunctionOptions | None]], stage: Stage) -> pa.Table:
    if _listed(stage):
        rows = rows.append_column(_ROWS, integers(np.arange(len(rows))))
        wanted = [*wanted, (_ROWS, "list", None)]
    # Called as the columns are, so that none comes twice where an aggregate has the name of another's column.
    steps = [(name, f"hash_{function}", options, name) for name, function, options in wanted]
    return acero.Declaration.from_sequence(
        [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
            acero.Declaration("aggregate", acero.AggregateNodeOptions(steps, keys=list(stage.divided_by))),
        ]
    ).to_table(use_threads=False)


def _listed(stage: Stage) -> list[str]:
    """The names of aggregates that are lists."""
    return [each.name for each in stage.plan.aggregates if each.function == "list"]


def _with_lists(made: pa.Table, lists: Mapping[str, pa.ListArray]) -> pa.Table:
    """Aggregates with lists in place of the numbers of the rows that they are made of."""
    for name, column in lists.items():
        made = made.append_column(name, column)
    return made.drop_columns([_ROWS]) if lists else made


def _values(values: pa.ChunkedArray, offsets: pa.ChunkedArray, rows: pa.ChunkedArray) -> pa.ListArray:
    """The values of each list of rows, with their offsets; nulls are left out."""
    numbers = _whole(rows)
    columns = [_whole(each).take(numbers.values) for each in (offsets, values)]
    ends = numbers.offsets
    if columns[1].null_count:
        there = columns[1].is_valid()
        kept = np.concatenate([[0], np.cumsum(there.to_numpy(zero_copy_only=False))])
        ends, columns = pa.array(kept[ends.to_numpy()], pa.int32()), [each.filter(there) for each in columns]
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays(columns, fields=list(LISTED)))


def _joined(lists: pa.ChunkedArray, rows: pa.ChunkedArray) -> pa.ListArray:
    """One list of those in each list of rows."""
    numbers = _whole(rows)
    taken = _whole(lists).take(numbers.values)
    return pa.ListArray.from_arrays(taken.offsets.take(numbers.offsets), taken.values)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece that begins with its first row."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _largest(column: pa.ChunkedArray) -> int:
    found = pc.min_max(column).as_py()
    return max(abs(found["min"]), abs(found["max"])) if found["min"] is not None else 0
