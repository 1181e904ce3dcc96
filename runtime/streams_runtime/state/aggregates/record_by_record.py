"""Aggregates whose records are taken one by one: what they have in common before and after that.

Unlike with other kinds, the records of a batch are no state until they are added to the one that the store has. So they
go along as they are (`passing`), and `played` makes states of them once it is known what comes after what.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.state.aggregates.aggregate_kind import Columns, Kind, can_be_kept
from streams_runtime.state.aggregates.merge_order import MergeSteps

Named = Callable[[int], str]
"""Key and partition of the sequence of this number, for messages."""


class RecordByRecord(Kind):
    """An aggregate function of that sort."""

    merges_in_columns: bool = False
    """Whether `merge` adds a batch's records to a stored state, so that only several parts need to be `played`."""

    by_order: bool = True
    """Whether the order in which records are taken, and sessions put together, makes a difference."""

    def keeps(self, kind: pa.DataType) -> bool:
        return can_be_declared(kind)

    def merge(self, old: Columns, new: Columns) -> Columns:  # noqa: ARG002 - a kind's signature
        """The old parts, which `played` puts others in place of."""
        parts = len(self.parts)
        return [*old[:parts], *nothing_of(old[parts:], len(old[0]))]

    @abstractmethod
    def played(self, columns: Columns, sequences: Sequence[MergeSteps], path: str, named: Named) -> Columns:
        """The parts that each sequence of rows of `columns` leaves (state.aggregates.merge_order), and nothing of what
        is passing.

        Raises StreamsException: what the user wrote failed; the message has the field.
        """

    @abstractmethod
    def per_update(self, columns: Columns, sequences: Sequence[MergeSteps], path: str, named: Named) -> Columns:
        """The same after each record: one state for each row of a sequence that is one record's, in their order.

        The other rows are stored states, or nulls. Raises as `played` does.
        """


def in_order(found: pa.ChunkedArray) -> Columns:
    """The lists of structs of an offset (`at`) and a record, in the order of offsets: those, and the records."""
    lists = whole(found)
    if _is_in_order(lists):
        return [pa.chunked_array([_like(lists, lists.values.field(name))]) for name in ("at", "record")]
    parents = pc.list_parent_indices(lists)
    records = pc.list_flatten(lists)
    # Spark's own sort does not take records with every type of column.
    order = pc.sort_indices(
        pa.table({"place": parents, "at": records.field("at")}),
        sort_keys=[("place", "ascending"), ("at", "ascending")],
    )
    records = records.take(order)
    ends = pc.cumulative_sum(pc.list_value_length(lists).cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return [pa.chunked_array([pa.ListArray.from_arrays(offsets, records.field(name))]) for name in ("at", "record")]


def _is_in_order(lists: pa.ListArray) -> bool:
    at = lists.values.field("at").to_numpy()
    falls = np.flatnonzero(np.diff(at) <= 0) + 1
    return not lists.null_count and bool(np.isin(falls, lists.offsets.to_numpy()).all())


def _like(lists: pa.ListArray, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(lists.offsets, values)


def nothing_of(columns: Columns, rows: int) -> Columns:
    """So many nulls of the types of the columns."""
    return [pa.chunked_array([pa.nulls(rows, each.type)]) for each in columns]


def whole(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def can_be_declared(kind: pa.DataType) -> bool:
    """Whether values of this type, which may be a list or a struct, can be kept as JSON."""
    if pa.types.is_list(kind):
        return can_be_declared(kind.value_type)
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(can_be_declared(each.type) for each in kind)
    return can_be_kept(kind) or pa.types.is_binary(kind)
