"""Records in columns: what a process_batch is given, and what it forwards, checked against what its step declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.api.reading.mistakes import suggestion
from streams_runtime.batch.columns import FROM_OFFSET, FROM_TOPIC, HIDDEN, NULL_VALUE

ROW, KEY, TIMESTAMP, HEADERS, TOMBSTONE = "_row", "_key", "_timestamp", "_headers", "_tombstone"
_OF_THE_RECORD = ("_topic", "_partition", "_offset", "_stream_time")
"""What a forwarded row has of its record in any case."""
HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_EARLIEST, _LATEST = 0, 2**63 - 1


def given_batch(rows: pa.Table, stream_times: Sequence[int]) -> pa.RecordBatch:
    """A task's rows as a process_batch is given them; `stream_times` (ms) are those of the task with each of them."""
    metadata = {
        ROW: pa.array(np.arange(len(rows), dtype=np.int32)),
        KEY: rows["_key"],
        TIMESTAMP: pc.divide(rows["_timestamp"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()), 1000),
        HEADERS: rows["_headers"],
        TOMBSTONE: rows[NULL_VALUE],
        "_topic": rows[FROM_TOPIC if FROM_TOPIC in rows.column_names else "_topic"],
        "_partition": rows["_partition"],
        "_offset": rows[FROM_OFFSET if FROM_OFFSET in rows.column_names else "_offset"],
        "_stream_time": pa.array(stream_times, pa.int64()),
    }
    names = [name for name in rows.column_names if name not in HIDDEN]
    return _one_batch(pa.table(metadata | {name: rows[name] for name in names}))


@dataclass(frozen=True, slots=True)
class ForwardedBatch:
    """Columns of rows that were forwarded. `rows` are the rows of the given batch of which they come.

    `keys` None: each has the key of its record. A value that is null is a tombstone. `outputs` are numbers of outputs;
    null: all of them.
    """

    rows: pa.Array
    keys: pa.Array | None
    values: pa.StructArray
    timestamps: pa.Array
    headers: pa.Array
    outputs: pa.Array


@dataclass(frozen=True, slots=True)
class BatchCall:
    """One call of process_batch: what it is given, and what it has forwarded so far."""

    given: pa.RecordBatch
    forwarded: list[ForwardedBatch] = field(default_factory=list)

    def in_record_order(self) -> ForwardedBatch | None:
        """All that was forwarded, as if each record had forwarded its own before the next one came; None: nothing."""
        if not self.forwarded:
            return None
        rows = pa.concat_arrays([each.rows for each in self.forwarded])
        order = pa.array(np.argsort(rows.to_numpy(), kind="stable"))
        keys = [each.keys for each in self.forwarded if each.keys is not None]
        return ForwardedBatch(
            rows.take(order),
            pa.concat_arrays(keys).take(order) if keys else None,
            pa.concat_arrays([each.values for each in self.forwarded]).take(order),
            pa.concat_arrays([each.timestamps for each in self.forwarded]).take(order),
            pa.concat_arrays([each.headers for each in self.forwarded]).take(order),
            pa.concat_arrays([each.outputs for each in self.forwarded]).take(order),
        )


def forwarded_batch(
    batch: object, given: pa.RecordBatch, value: pa.StructType, key: pa.DataType | None, output: int | None
) -> ForwardedBatch:
    """What a process_batch forwards of the batch that it was `given`. `value` and `key` are the declared types.

    Raises TypeError or ValueError: it is no batch, or a column is missing, unknown, of another type, or says what can't
    be.
    """
    if isinstance(batch, pa.Table):
        batch = _one_batch(batch)
    if not isinstance(batch, pa.RecordBatch):
        raise TypeError(f"{type(batch).__name__} in place of a batch; give a pyarrow.RecordBatch")
    _check_names(batch.schema.names, value)
    rows = _rows(batch, len(given))
    columns = [_cast(batch[name.name], name.type, name.name) for name in value]
    gone = None if TOMBSTONE not in batch.schema.names else _tombstones(batch[TOMBSTONE])
    values = pa.StructArray.from_arrays(columns, fields=list(value), mask=gone)
    keys, times, headers = _keys(key, batch, given, rows), _timestamps(batch, given, rows), _headers(batch, given, rows)
    return ForwardedBatch(rows, keys, values, times, headers, pa.repeat(pa.scalar(output, pa.int32()), len(rows)))


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table whose columns lie in one piece each."""
    columns = [pa.concat_arrays(each.chunks) if each.num_chunks else pa.array([], each.type) for each in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _check_names(names: Sequence[str], value: pa.StructType) -> None:
    declared = [each.name for each in value]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the column {name!r} is there {names.count(name)} times; keep one of them")
        if name not in (ROW, KEY, TIMESTAMP, HEADERS, TOMBSTONE, *_OF_THE_RECORD, *declared):
            near = suggestion(name, declared)
            raise ValueError(f"the step declares no column {name!r}; {near}; select those that it declares")
    for name in (ROW, *declared):
        if name not in names:
            why = "keep it: it says which record each row comes of" if name == ROW else "the step declares it"
            raise ValueError(f"the column {name!r} is missing; {why}")


def _rows(batch: pa.RecordBatch, count: int) -> pa.Array:
    rows = batch[ROW]
    if not pa.types.is_integer(rows.type) or rows.null_count:
        raise TypeError(f"the column {ROW!r} has {_found(rows)}; give the numbers that the batch came with")
    if len(rows) and not 0 <= pc.min(rows).as_py() <= pc.max(rows).as_py() < count:
        least, most = pc.min(rows), pc.max(rows)
        raise ValueError(f"the column {ROW!r} goes from {least} to {most}, of {count} rows that were given")
    return rows.cast(pa.int32())


def _tombstones(column: pa.Array) -> pa.Array:
    if not pa.types.is_boolean(column.type) or column.null_count:
        raise TypeError(f"the column {TOMBSTONE!r} has {_found(column)}; give true or false")
    return column


def _keys(key: pa.DataType | None, batch: pa.RecordBatch, given: pa.RecordBatch, rows: pa.Array) -> pa.Array | None:
    own = given[KEY].take(rows)
    column = batch[KEY] if KEY in batch.schema.names else own
    if key is not None:
        return _cast(column, key, KEY)
    if column is not own and not own.equals(column):
        for mine, other in zip(own.to_pylist(), column.to_pylist(), strict=True):
            if mine != other and (mine == mine or other == other):  # noqa: PLR0124 - NaN is no other key than NaN
                raise ValueError(f"the key {other!r} in place of {mine!r}; declare process.key, so that it may change")
    return None


def _timestamps(batch: pa.RecordBatch, given: pa.RecordBatch, rows: pa.Array) -> pa.Array:
    if TIMESTAMP not in batch.schema.names:
        return given[TIMESTAMP].take(rows)
    times = batch[TIMESTAMP]
    if not pa.types.is_integer(times.type) or times.null_count:
        raise TypeError(f"the column {TIMESTAMP!r} has {_found(times)}; give milliseconds since 1970")
    if len(times) and not _EARLIEST <= pc.min(times).as_py() <= pc.max(times).as_py() <= _LATEST:
        raise ValueError(
            f"the column {TIMESTAMP!r} goes from {pc.min(times)} to {pc.max(times)}; give milliseconds since 1970"
        )
    return times.cast(pa.int64())


def _headers(batch: pa.RecordBatch, given: pa.RecordBatch, rows: pa.Array) -> pa.Array:
    if HEADERS not in batch.schema.names:
        return given[HEADERS].take(rows).cast(HEADERS_TYPE)
    headers = _cast(batch[HEADERS], HEADERS_TYPE, HEADERS)
    if pc.any(pc.is_null(pc.struct_field(pc.list_flatten(headers), [0]))).as_py():
        raise ValueError(f"the column {HEADERS!r} has a header without a name; a header has a text for its name")
    return headers


def _cast(column: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """As the declared type, if all of its values are of that."""
    if not _fits(column.type, kind):
        raise TypeError(f"the column {name!r} that is forwarded has the type {column.type}; give {kind}")
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise ValueError(f"the column {name!r} that is forwarded does not fit {kind}: {error}") from None


def _fits(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether values of the one type are of the other, but for their ranges."""
    types = pa.types
    if given.equals(kind) or types.is_null(given):
        return True
    if types.is_dictionary(given):
        return _fits(given.value_type, kind)
    if types.is_list(kind):
        return (types.is_list(given) or types.is_large_list(given)) and _fits(given.value_type, kind.value_type)
    if types.is_struct(kind):
        return (
            types.is_struct(given)
            and [each.name for each in given] == [each.name for each in kind]
            and all(_fits(one.type, other.type) for one, other in zip(given, kind, strict=True))
        )
    if types.is_timestamp(kind):
        return bool(types.is_timestamp(given) and given.tz is not None)
    return any(is_one(given) and is_one(kind) for is_one in _FAMILIES)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


_FAMILIES = (pa.types.is_integer, pa.types.is_floating, _is_text, _is_bytes)


def _found(column: pa.Array) -> str:
    return "nulls" if column.null_count else f"the type {column.type}"
