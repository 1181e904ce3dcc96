"""JSON read outside of Spark's JVM, as far as that reader and Spark's are sure to agree.

Spark's from_json takes most of the time of a batch of small records. Arrow's reader takes a fifth of it and is strict:
a value of another type, a field that is there twice, a lone surrogate are errors to it. What it does not take, and what
it might take otherwise than Spark, stays unread here, and Spark reads it: no record is broken unless from_json says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

_EXACT = frozenset({pa.string(), pa.bool_(), pa.int64(), pa.int32(), pa.float64()})
_TIME = pa.timestamp("us", tz="UTC")
_TIME_TEXT = r"^[12]\d{3}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z?$"
_PIECE = 64  # records among which the one that Arrow does not take is looked for no further
_PIECES = 8  # into which the others are divided to look for it
_TOGETHER = 64 * 1024 * 1024  # bytes that are read at once
# Jackson has limits, which Arrow has not: 50,000 characters of a name, 1,000 of a number, 1,000 objects in each other.
_LONG, _LONGEST, _DEEP = 1_000, 50_000, 1_000
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]{1000}")
# The two write them in other ways.
_NO_NUMBER = re.compile(rb"[:,\[\s-](?:Inf|NaN)")


@dataclass(frozen=True)
class JsonReader:
    """Reads the fields of a schema out of JSON objects; others are left out. May be pickled."""

    schema: pa.Schema

    @cached_property
    def type(self) -> pa.StructType:
        """Of what `read` gives."""
        return pa.struct(list(self.schema))

    def read(self, values: pa.Array) -> tuple[pa.StructArray, pa.BooleanArray]:
        """The fields of each of `values`, (large) binary, and which were read; the fields of the others are null.

        A value that is not there is none that was read.
        """
        if not len(values):
            return pa.array([], self.type), pa.array([], pa.bool_())
        parts = list(self._parts(values.fill_null(b"{}") if values.null_count else values))
        read = pa.concat_arrays([pa.repeat(part is not None, count) for part, count in parts])
        columns = [pa.nulls(count, self.type) if part is None else part for part, count in parts]
        if values.null_count:
            read = pc.and_(read, values.is_valid())
        return pa.concat_arrays(columns), read

    def _parts(self, values: pa.Array) -> Iterator[tuple[pa.StructArray | None, int]]:
        """What runs of values hold, in order, and how many they are; None: they are not read."""
        found = self._whole(values)
        if found is not None or len(values) <= _PIECE:
            yield found, len(values)
            return
        step = -(-len(values) // _PIECES)
        for start in range(0, len(values), step):
            yield from self._parts(values[start : start + step])

    def _whole(self, values: pa.Array) -> pa.StructArray | None:
        """All of these values, or None."""
        data = _lines(values)
        if data is None:
            return None
        try:
            table = pyarrow.json.read_json(pa.BufferReader(data), _in_one(data), self._options)
            if table.num_rows != len(values):
                return None
            columns = [self._column(table[field.name], field) for field in self.schema]
        except pa.ArrowInvalid:
            return None
        if any(column is None for column in columns):
            return None
        return pa.StructArray.from_arrays(columns, fields=list(self.schema))

    @cached_property
    def _options(self) -> pyarrow.json.ParseOptions:
        texts = [field.with_type(pa.string()) if field.type == _TIME else field for field in self.schema]
        return pyarrow.json.ParseOptions(explicit_schema=pa.schema(texts), unexpected_field_behavior="ignore")

    @staticmethod
    def _column(column: pa.ChunkedArray, field: pa.Field) -> pa.Array | None:
        found = column.combine_chunks()
        if field.type != _TIME:
            return None if _has_infinite(found) else found
        if pc.all(pc.match_substring_regex(found, _TIME_TEXT)).as_py() is False:
            return None
        return pc.utf8_rtrim(found, "Z").cast(pa.timestamp("us")).cast(_TIME)


def json_reader(schema: pa.Schema) -> JsonReader | None:
    """A reader of these columns; None where only Spark can tell what a type of theirs takes."""
    times = all(field.type == _TIME or _is_exact(field.type) for field in schema)
    return JsonReader(schema) if len(schema) and times else None


def _is_exact(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_exact(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _is_exact(kind.value_type)
    return kind in _EXACT


def _has_infinite(column: pa.Array) -> bool:
    """Whether a number is infinite: Arrow makes that of one with too many digits."""
    if pa.types.is_struct(column.type):
        return any(_has_infinite(column.field(number)) for number in range(column.type.num_fields))
    if pa.types.is_list(column.type):
        return _has_infinite(column.values)
    return pa.types.is_floating(column.type) and pc.all(pc.is_finite(column)).as_py() is False


def _lines(values: pa.Array) -> bytes | None:
    """The values as lines, when each of them begins and ends as an object, without a line's end in it.

    Then as many objects as lines are one object a line. None otherwise.
    """
    sizes = pc.binary_length(values)
    if pc.sum(sizes).as_py() > _TOGETHER:
        return None
    if pc.max(sizes).as_py() > _LONG and any(map(_has_limits, values.filter(pc.greater(sizes, _LONG)).to_pylist())):
        return None
    data: bytes = pc.binary_join(pa.ListArray.from_arrays([0, len(values)], values), pa.scalar(b"\n", values.type))[
        0
    ].as_py()
    gaps = len(values) - 1
    if data.count(b"\n") != gaps or data.count(b"}\n{") != gaps or data[:1] != b"{" or data[-1:] != b"}":
        return None
    if (b"Inf" in data or b"NaN" in data) and _NO_NUMBER.search(data):
        return None
    return data if _is_utf8(data) else None


def _has_limits(value: bytes) -> bool:
    """Whether a value may come up against one of Jackson's limits."""
    if len(value) <= _LONG:
        return False
    if len(value) > _LONGEST:
        return True
    return value.count(b"{") + value.count(b"[") >= _DEEP or _LONG_NUMBER.search(value) is not None


def _is_utf8(data: bytes) -> bool:
    ends = pa.array([0, len(data)], pa.int32()).buffers()[1]
    try:
        pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(data)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _in_one(data: bytes) -> pyarrow.json.ReadOptions:
    return pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1)
