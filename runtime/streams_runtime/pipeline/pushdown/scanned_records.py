"""Records as a scan reads them: keys and values by their formats, and what is left to Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import ORDER_TIME
from streams_runtime.kafka.consumer.record_table import LATEST_TIME, RAW_SCHEMA
from streams_runtime.metrics.sampled import NOTHING, Spread
from streams_runtime.pipeline.formats.json_read import JsonReader

Column = Callable[[str], pa.Array]
"""Gives a column of RAW_SCHEMA by its name."""
PARTITION = "_partition"
METADATA = {
    PARTITION: "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
    "_topic": "topic",
    "_headers": "headers",
}
"""Columns of records that are columns of RAW_SCHEMA."""
_WIDTH = {"long": (8, ">i8", pa.int64()), "int": (4, ">i4", pa.int32())}
KEYS = frozenset({"string", "bytes", *_WIDTH})
"""Formats of keys that are read here."""
_LEFT = 20_000  # records that are handed on; where there are more of them Spark had better read all by itself


@dataclass(frozen=True, slots=True)
class Formats:
    """What keys and values of a topic are, and whether headers are wanted. May be pickled."""

    key: str
    json: JsonReader
    headers: bool = False

    def read(self, column: Column) -> Read:
        """Read some records."""
        raw_keys, values = column("key"), column("value")
        fields, read = self.json.read(values)
        keys, keys_fit = _keys(raw_keys, self.key)
        times = column("timestamp")
        return Read(column, raw_keys, keys, values, fields, read, times, _both(keys_fit, _are_times(times)))


def formats_of(key: str, json: JsonReader | None, headers: bool = False) -> Formats | None:
    """The formats; None where keys or values are of one that only Spark reads."""
    return None if json is None or key not in KEYS else Formats(key, json, headers)


@dataclass(frozen=True, slots=True)
class Read:
    """Some records: their keys as they came and as they are read, their values as they came and the fields of these, of
    which records these were read, their times, and which keys and times are what they should be (None: all).
    """

    column: Column
    raw_keys: pa.Array
    keys: pa.Array
    values: pa.Array
    fields: pa.StructArray
    values_read: pa.BooleanArray
    times: pa.Array
    fit: pa.BooleanArray | None

    @property
    def whole(self) -> pa.BooleanArray:
        """Which records have a key that was read and a value that was."""
        return self.fitting(self.values_read)

    def spread(self, some: pa.BooleanArray) -> Spread:
        """Of the times (ms) of some of the records."""
        return _spread(self.times if some.true_count == len(some) else self.times.filter(some))

    def fitting(self, some: pa.BooleanArray) -> pa.BooleanArray:
        """Those of `some` whose keys and times are what they should be."""
        return some if self.fit is None else pc.and_(some, self.fit)

    def columns(self, names: Iterable[str], headers: bool = False) -> dict[str, pa.Array]:
        """Columns as expressions see them, of records with a value; without `headers` these are null."""
        found: dict[str, pa.Array] = {}
        for name in names:
            match name:
                case "_key":
                    found[name] = self.keys
                case "_null":
                    found[name] = pa.repeat(False, len(self.keys))
                case "_timestamp":
                    found[name] = self.times
                case "_headers" if not headers:  # to find them may take a call for each record
                    found[name] = pa.nulls(len(self.keys), RAW_SCHEMA.field("headers").type)
                case _:
                    found[name] = self.column(METADATA[name]) if name in METADATA else self.fields.field(name)
        return found


@dataclass(slots=True)
class Left:
    """Records that are left to Spark, unless there are too many of them."""

    most: int = _LEFT
    records: list[pa.Table] = field(default_factory=list)
    too_many: bool = False
    _count: int = 0

    def take(self, column: Column, some: pa.BooleanArray, order_times: pa.Array | None = None) -> None:
        """Take in `some` of the records that `column` gives, with their turns by those that are not left (TURN)."""
        self._count += some.true_count
        if self._count > self.most:
            self.records.clear()
            self.too_many = True
        else:
            raw = pa.table([column(each.name) for each in RAW_SCHEMA], schema=RAW_SCHEMA)
            raw = raw if order_times is None else raw.append_column(ORDER_TIME, order_times)
            self.records.append(raw.filter(some))

    @property
    def table(self) -> pa.Table:
        """All of them."""
        return pa.concat_tables(self.records) if self.records else RAW_SCHEMA.empty_table()


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of records: what their stage makes of them, and records that are left to Spark.

    `records` were read here, `times` (ms) are theirs, `dropped` of them have no key, `late` of them came after their
    window. Not `done`: a sum may have left its range, or too many records are for Spark to read, and so all of them are
    left to it.
    """

    made: pa.Table
    left: pa.Table
    records: int = 0
    dropped: int = 0
    done: bool = True
    late: int = 0
    times: Spread = NOTHING


def _spread(times: pa.Array) -> Spread:
    if not len(times):
        return NOTHING
    microseconds = times.cast(pa.int64()).to_numpy(zero_copy_only=False)
    total = float(microseconds.sum(dtype=np.float64))  # of integers it may leave their range
    return Spread(len(times), total / 1000, int(microseconds.min()) / 1000, int(microseconds.max()) / 1000)


def _keys(data: pa.Array, key_format: str) -> tuple[pa.Array, pa.BooleanArray | None]:
    """Keys as their format has them, and which are readable; None: all are."""
    if key_format == "bytes":
        return data, None
    if key_format == "string":
        try:
            return data.cast(pa.string()), None
        except pa.ArrowInvalid:
            texts = pa.array([_text(each) for each in data.to_pylist()], pa.string())
            return texts, pc.equal(texts.is_valid(), data.is_valid())
    width, big_endian, kind = _WIDTH[key_format]
    there = data.is_valid()
    fit = pc.fill_null(pc.equal(pc.binary_length(data), width), True)
    numbers = pc.if_else(pc.and_(there, fit), data, pa.scalar(None, pa.binary()))
    joined = b"".join(each or bytes(width) for each in numbers.to_pylist())
    values = np.frombuffer(joined, big_endian).astype(kind.to_pandas_dtype())
    return pa.array(values, kind, mask=numbers.is_null().to_numpy(zero_copy_only=False)), fit


def _text(data: bytes | None) -> str | None:
    """None where it is not UTF-8 too."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _are_times(times: pa.Array) -> pa.BooleanArray | None:
    """Which records have a time that a record may have; None: all of them."""
    microseconds = times.cast(pa.int64())
    fit = pc.and_(pc.greater_equal(microseconds, 0), pc.less_equal(microseconds, LATEST_TIME * 1000))
    return None if fit.true_count == len(fit) else fit


def _both(one: pa.BooleanArray | None, other: pa.BooleanArray | None) -> pa.BooleanArray | None:
    return other if one is None else one if other is None else pc.and_(one, other)
