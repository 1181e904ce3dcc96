"""Spark's order of values: null is the least, NaN the largest number, arrays and structs go by what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.json_columns import FLOATS
from streams_runtime.state.aggregates.aggregate_kind import can_be_kept
from streams_runtime.state.aggregates.reduce_state import nullable

Numbers = npt.NDArray[np.int64]
REMEDY = "cast a DECIMAL to BIGINT, DOUBLE or STRING; give the fields of a struct different names"
"""What to do about a type that can't be kept."""


def can_be_ordered(kind: pa.DataType) -> bool:
    """Whether values of this type can be compared, and kept as JSON."""
    if pa.types.is_list(kind):
        return can_be_ordered(kind.value_type)
    if pa.types.is_struct(kind):
        names = {field.name for field in kind}
        return len(names) == kind.num_fields and all(can_be_ordered(field.type) for field in kind)
    return can_be_kept(kind) or pa.types.is_binary(kind)


def ordered(*columns: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """Columns of one type as those of a type that Arrow compares; null stays null, and NaN NaN."""
    kind = columns[0].type
    if pa.types.is_nested(kind):
        return _ranks(columns)
    # Arrow does not compare times with a zone, nor booleans; the numbers beneath them have the same order.
    if pa.types.is_timestamp(kind):
        return [each.cast(pa.int64()) for each in columns]
    return [each.cast(pa.uint8()) if pa.types.is_boolean(kind) else each for each in columns]


def precedes(function: str, one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where the one is larger, by max, or smaller."""
    larger, than = ordered(*((one, other) if function == "max" else (other, one)))
    found = pc.fill_null(pc.greater(larger, than), False)
    if larger.type in FLOATS:
        found = pc.or_(found, pc.and_(_is_nan(larger), pc.and_(than.is_valid(), pc.invert(_is_nan(than)))))
    return pc.or_(found, pc.and_(larger.is_valid(), than.is_null()))


def alike(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where both are the same value, NaN being one, and none is null."""
    mine, theirs = ordered(one, other)
    found = pc.fill_null(pc.equal(mine, theirs), False)
    return pc.or_(found, pc.and_(_is_nan(mine), _is_nan(theirs))) if mine.type in FLOATS else found


def with_one_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which of the two zeros is found would depend on where batches begin, as they are the same value.

    Fields that can't be null in one expression can be in the next: they are such that may.
    """
    return pa.chunked_array([_of_one_zero(each) for each in column.chunks], nullable(column.type))


def _of_one_zero(array: pa.Array) -> pa.Array:
    if array.type in FLOATS:
        return pc.add(array, pa.scalar(0, array.type))
    if pa.types.is_list(array.type):
        array = pa.concat_arrays([array])  # a part of an array takes no mask
        return pa.ListArray.from_arrays(array.offsets, _of_one_zero(array.values), mask=array.is_null())
    if pa.types.is_struct(array.type):
        parts = [_of_one_zero(pc.struct_field(array, [number])) for number in range(array.type.num_fields)]
        fields = [pa.field(field.name, part.type) for field, part in zip(array.type, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())
    return array


def _ranks(columns: tuple[pa.ChunkedArray, ...]) -> list[pa.ChunkedArray]:
    """Numbers in the order of the values of all columns."""
    whole = pa.concat_arrays([chunk for each in columns for chunk in each.chunks] or [pa.nulls(0, columns[0].type)])
    ranks = pa.array(_rank(whole), mask=whole.is_null().to_numpy(zero_copy_only=False))
    starts = np.cumsum([0, *(len(each) for each in columns)])
    return [pa.chunked_array([ranks.slice(start, len(each))]) for start, each in zip(starts, columns, strict=False)]


def _rank(array: pa.Array) -> Numbers:
    """A number for each value, the same one for those that are alike; 0 for null."""
    there = array.is_valid().to_numpy(zero_copy_only=False)
    found = np.zeros(len(array), np.int64)
    values = array.filter(array.is_valid())
    if pa.types.is_struct(array.type):
        fields = (_rank(pc.struct_field(values, [number])) for number in range(array.type.num_fields))
        found[there] = 1 + _in_turn(len(values), fields)
    elif pa.types.is_list(array.type):
        found[there] = 1 + _in_turn(len(values), _by_place(values))
    else:
        found[there] = 1 + _rank_of_plain(values)
    return found


def _by_place(lists: pa.ListArray) -> Iterator[Numbers]:
    """The ranks of the first elements, of the second ones, and so on; a list that has ended comes before all."""
    sizes = pc.list_value_length(lists).to_numpy()
    starts, ranks = np.cumsum(sizes) - sizes, _rank(lists.flatten()) + 1
    for place in range(sizes.max(initial=0)):
        found = np.zeros(len(lists), np.int64)
        longer = sizes > place
        found[longer] = ranks[starts[longer] + place]
        yield found


def _in_turn(rows: int, parts: Iterable[Numbers]) -> Numbers:
    """The ranks of rows by their parts, the first of which decides first."""
    found = np.zeros(rows, np.int64)
    for part in parts:
        _, found = np.unique(found * (part.max(initial=0) + 1) + part, return_inverse=True)
    return found


def _rank_of_plain(values: pa.Array) -> Numbers:
    (column,) = ordered(pa.chunked_array([values]))
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return np.asarray(pc.rank(column, tiebreaker="dense"), np.int64)
    # NaN comes last, and both zeros are one.
    _, found = np.unique(column.to_numpy(), return_inverse=True)
    return found


def _is_nan(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.is_nan(column), False)
