"""Records become partial aggregates, in columns: in a worker of Spark's, or where the records are already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from streams_runtime.kafka.columns import integers
from streams_runtime.kafka.record_table import RAW_SCHEMA
from streams_runtime.pipeline.json_read import JsonReader
from streams_runtime.pipeline.pushdown.plan import Aggregate, Plan
from streams_runtime.topology.windows import TimeWindows, Windows

Column = Callable[[str], pa.Array]
"""Gives a column of RAW_SCHEMA by its name."""
# Names as pipeline.nodes has them, which Spark's workers, where this runs, would import with all that it needs.
PARTITION, KEY, TIME, WINDOW, RECORDS = "_partition", "_key", "_time", "_window", "_records"
_METADATA = {PARTITION: "partition", "_offset": "offset", "_timestamp": "timestamp"}
_NULL = "_null"
_WIDTH = {"long": (8, ">i8", pa.int64()), "int": (4, ">i4", pa.int32())}
KEYS = frozenset({"string", "bytes", *_WIDTH})
"""Formats of keys that are read here."""
_GROUPED = 1_000_000  # rows that are put together at a time
_LEFT = 20_000  # records that are handed on; where there are more of them Spark had better read all by itself
_WITHIN = 2**62  # two sums below it are together in the range of BIGINT
READ_HERE = frozenset(_METADATA) | {KEY, _NULL}
"""Columns of readable records beside the fields of their values that a plan may read."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What is made of a source's records, of each key or of each of its tumbling windows. May be pickled."""

    plan: Plan
    key_format: str
    json: JsonReader
    windows: TimeWindows | None = None

    @property
    def divided_by(self) -> tuple[str, ...]:
        """The columns whose values have partial aggregates of their own."""
        return (PARTITION, KEY) if self.windows is None else (PARTITION, KEY, WINDOW)


def stage_of(plan: Plan, key_format: str, json: JsonReader | None, windows: Windows | None) -> Stage | None:
    """A stage; None where keys or values are of a format that only Spark reads, or the plan reads something else, or
    windows overlap.
    """
    tumbling = isinstance(windows, TimeWindows) and windows.size == windows.advance
    if windows is not None and not tumbling:
        return None
    if json is None or key_format not in KEYS or not plan.reads <= READ_HERE | set(json.schema.names):
        return None
    return Stage(plan, key_format, json, windows if isinstance(windows, TimeWindows) else None)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of records: partial aggregates by partition and key, and records that are left to Spark.

    `records` were read here, `dropped` of them have no key, `late` of them came after their window. Not `done`: a sum
    may have left its range, or too many records are for Spark to read, and so all of them are left to it.
    """

    partials: pa.Table
    left: pa.Table
    records: int = 0
    dropped: int = 0
    done: bool = True
    late: int = 0


@dataclass(slots=True)
class Gathering:
    """Records on their way to an answer; `most`: how many there may be in all."""

    stage: Stage
    most: int
    _rows: list[pa.Table] = field(default_factory=list)
    _partials: list[pa.Table] = field(default_factory=list)
    _left: list[pa.Table] = field(default_factory=list)
    _left_count: int = 0
    _records: int = 0
    _dropped: int = 0
    _late: int = 0
    _done: bool = True
    _stream_times: dict[int, int] = field(default_factory=dict)
    """How far each partition has come (ms): the largest time of the records that its windows have met."""

    def take(self, column: Column) -> None:
        """Take in some records. `column` is asked for the columns that are needed."""
        fields, read = self.stage.json.read(column("value"))
        keys, fit = _keys(column("key"), self.stage.key_format)
        read = read if fit is None else pc.and_(read, fit)
        here = read.true_count
        rows = pa.table(self._columns(column, keys, fields))
        if here < len(read):
            self._leave(column, pc.invert(read))
            rows = rows.filter(read)
        self._records += here
        self._keep(rows)

    def answer(self) -> Answer:
        """What has become of all of them."""
        self._group()
        return Answer(
            together(self._partials, self.stage),
            pa.concat_tables(self._left) if self._left else RAW_SCHEMA.empty_table(),
            self._records,
            self._dropped,
            self._done,
            self._late,
        )

    def _leave(self, column: Column, some: pa.BooleanArray) -> None:
        self._left_count += some.true_count
        # What is late for a window goes by all records before it, those that Spark reads included.
        if self._left_count > _LEFT or self.stage.windows is not None:
            self._left.clear()
            self._done = False
        else:
            self._left.append(_raw(column).filter(some))

    def _columns(self, column: Column, keys: pa.Array, fields: pa.StructArray) -> dict[str, pa.Array]:
        found = {KEY: keys, PARTITION: column("partition"), "_timestamp": column("timestamp")}
        for name in self.stage.plan.reads - found.keys():
            if name == _NULL:
                found[name] = pa.repeat(False, len(keys))
            else:
                found[name] = column(_METADATA[name]) if name in _METADATA else fields.field(name)
        return found

    def _keep(self, rows: pa.Table) -> None:
        plan = self.stage.plan
        steps = [acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))]
        if plan.kept is not None:
            steps.append(acero.Declaration("filter", acero.FilterNodeOptions(plan.kept)))
        arguments = {each.name: each.argument for each in plan.aggregates if each.argument is not None}
        wanted = {name: pc.field(name) for name in (PARTITION, KEY, "_timestamp")} | arguments
        steps.append(acero.Declaration("project", acero.ProjectNodeOptions(list(wanted.values()), list(wanted))))
        kept = acero.Declaration.from_sequence(steps).to_table(use_threads=False)
        keyless = kept[KEY].null_count
        if keyless:
            self._dropped += keyless
            kept = kept.filter(pc.is_valid(kept[KEY]))
        self._done = self._done and not any(
            each.adds_integers and _largest(kept[each.name]) * self.most >= _WITHIN for each in plan.aggregates
        )
        if self.stage.windows is not None:
            kept = self._in_windows(kept, self.stage.windows)
        self._rows.append(kept)
        if sum(map(len, self._rows)) >= _GROUPED:
            self._group()

    def _in_windows(self, rows: pa.Table, windows: TimeWindows) -> pa.Table:
        """The rows that come in time, with the starts of their windows; see pipeline.windows.in_windows."""
        times = rows["_timestamp"].cast(pa.int64()).to_numpy() // 1000
        starts = times - times % windows.advance
        partitions = rows[PARTITION].to_numpy()
        closed = np.zeros(len(rows), np.bool_)
        for number in np.unique(partitions).tolist():
            mine = np.flatnonzero(partitions == number)
            come = np.maximum.accumulate(times[mine])
            come = np.maximum(come, self._stream_times.get(number, come[0]))
            closed[mine] = starts[mine] + windows.size + windows.grace <= come
            self._stream_times[number] = int(come[-1])
        self._late += int(closed.sum())
        return rows.append_column(WINDOW, integers(starts)).filter(pa.array(~closed))

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
    sums = [(each.name, "sum" if each.function == "count" else each.function, _AT_LEAST_ONE) for each in aggregates]
    counted = [] if stage.windows is None else [(RECORDS, "sum", _AT_LEAST_ONE)]
    return _aggregated(pa.concat_tables(partials), [*sums, (TIME, "max", None), *counted], stage)


def fits_with(partials: pa.Table, aggregates: Sequence[Aggregate]) -> bool:
    """Whether sums of these partial aggregates stay in their range when another one's are added."""
    return not any(each.adds_integers and _largest(partials[each.name]) >= _WITHIN for each in aggregates)


_AT_LEAST_ONE = pc.ScalarAggregateOptions(min_count=1)
_ALL = pc.CountOptions(mode="all")


def _grouped(rows: pa.Table, stage: Stage) -> pa.Table:
    rows = rows.append_column(TIME, pc.divide(rows["_timestamp"].cast(pa.int64()), 1000))
    wanted = []
    for each in stage.plan.aggregates:
        match each.function, each.argument:
            case "count", None:
                rows = rows.append_column(each.name, rows[PARTITION])
                wanted.append((each.name, "count", _ALL))
            case "count", _:
                wanted.append((each.name, "count", None))
            case function, _:
                wanted.append((each.name, function, _AT_LEAST_ONE))
    if stage.windows is not None:
        rows = rows.append_column(RECORDS, rows[PARTITION])
        wanted.append((RECORDS, "count", _ALL))
    return _aggregated(rows, [*wanted, (TIME, "max", None)], stage)


def _aggregated(rows: pa.Table, wanted: Sequence[tuple[str, str, pc.FunctionOptions | None]], stage: Stage) -> pa.Table:
    # Called as the columns are, so that none comes twice where an aggregate has the name of another's column.
    steps = [(name, f"hash_{function}", options, name) for name, function, options in wanted]
    return acero.Declaration.from_sequence(
        [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
            acero.Declaration("aggregate", acero.AggregateNodeOptions(steps, keys=list(stage.divided_by))),
        ]
    ).to_table(use_threads=False)


def _largest(column: pa.ChunkedArray) -> int:
    found = pc.min_max(column).as_py()
    return max(abs(found["min"]), abs(found["max"])) if found["min"] is not None else 0


def _raw(column: Column) -> pa.Table:
    return pa.table([column(each.name) for each in RAW_SCHEMA], schema=RAW_SCHEMA)


def _keys(data: pa.Array, key_format: str) -> tuple[pa.Array, pa.BooleanArray | None]:
    """Keys as their format has them, and which are readable; None: all are."""
    if key_format == "bytes":
        return data, None
    if key_format == "string":
        try:
            return data.cast(pa.string()), None
        except pa.ArrowInvalid:  # Spark takes any bytes for a string
            return pa.nulls(len(data), pa.string()), pa.repeat(False, len(data))
    width, big_endian, kind = _WIDTH[key_format]
    there = data.is_valid()
    fit = pc.fill_null(pc.equal(pc.binary_length(data), width), True)
    numbers = pc.if_else(pc.and_(there, fit), data, pa.scalar(None, pa.binary()))
    joined = b"".join(each or bytes(width) for each in numbers.to_pylist())
    values = np.frombuffer(joined, big_endian).astype(kind.to_pandas_dtype())
    return pa.array(values, kind, mask=numbers.is_null().to_numpy(zero_copy_only=False)), fit
