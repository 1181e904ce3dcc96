"""reduce(initial, (state, row) -> …): a lambda in Spark SQL takes a batch's records into the state of their key.

What is computed is decided here, and Spark computes it (`Fold`) for all keys at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.api.sql.reduce_aggregates import Reduction
from streams_runtime.api.sql.state_types import KEPT
from streams_runtime.state.aggregates.aggregate_kind import Columns
from streams_runtime.state.aggregates.merge_order import Mark, MergeSteps
from streams_runtime.state.aggregates.record_by_record import Named, RecordByRecord, in_order, nothing_of, whole

STATE, RECORDS = "state", "records"
MERGE_STEPS = "merge_steps"
DO, RECORD = "do", "record"
BEGIN, STORED, ADD, MERGE = range(4)
"""What a merge step does to a stack of states: begin a new one, put a stored one on it, add a record to the last one,
put the last two together.
"""
CHUNKS = "chunks"
CHUNK_SIZE = 256
"""How many records at most have their states put into one list, since each one is put there by a copy of the list."""
Fold = Callable[[pa.Table], pa.ChunkedArray]
"""One state for each row. A row is a stored state (STATE, null where there was none) and the records to be added to it
in their order (RECORDS); or, where states are put together, MERGE_STEPS: what to DO, with which STATE or
RECORD. Where every change counts, a row has the records, or the steps, in lists of CHUNK_SIZE (CHUNKS), and what it
gives is a list of states: one after each record. Raises StreamsException: the expression failed.
"""


class Reducing(RecordByRecord):
    """What a lambda makes of the records, which is what a user sees; null begins with the initial value anew."""

    passing = (RECORDS,)
    given = ("", "found")
    remedy = f"cast the initial value to {KEPT}"

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
        self.fold: Fold | None = None
        """Set before anything is played."""

    def expressions(self, argument: str | None) -> Sequence[str]:
        # Of the initial value the type alone is asked, in an empty list: fields of a literal are not null, and Arrow
        # takes no null for a struct of such.
        return (
            f"any_value(case when false then array({self.reduction.initial}) else array() end)",
            f"collect_list(struct(_offset as at, {argument} as record))",
        )

    def types(self, given: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        state, found = given
        return [nullable(state.value_type), pa.list_(nullable(found.value_type.field("record").type))]

    def of_batch(self, given: Columns) -> Columns:
        state, found = given
        return [pa.chunked_array([pa.nulls(len(state), nullable(state.type.value_type))]), in_order(found)[1]]

    def played(self, columns: Columns, sequences: Sequence[MergeSteps], path: str, named: Named) -> Columns:  # noqa: ARG002 - a kind's signature
        assert self.fold is not None
        states, records = (whole(each) for each in columns)
        asked = _merging if self.reduction.merge is not None else _adding
        left = self.fold(asked(states, records, sequences)).cast(columns[0].type)
        return [left, *nothing_of(columns[1:], len(sequences))]

    def per_update(self, columns: Columns, sequences: Sequence[MergeSteps], path: str, named: Named) -> Columns:  # noqa: ARG002 - a kind's signature
        assert self.fold is not None
        states, records = (whole(each) for each in columns)
        name, asked = RECORDS, _adding
        if self.reduction.merge is not None:
            name, asked = MERGE_STEPS, _merging
        done = asked(states, records, sequences)
        chunks = _in_chunks(whole(done[name]))
        left = pc.list_flatten(self.fold(done.drop_columns(name).append_column(CHUNKS, chunks)))
        return [left.cast(columns[0].type), *nothing_of(columns[1:], len(left))]


def _in_chunks(lists: pa.ListArray) -> pa.ListArray:
    """The lists, each as lists of CHUNK_SIZE of its elements and one of what is left."""
    ends = lists.offsets.to_pylist()
    starts = [range(start, end, CHUNK_SIZE) for start, end in pairwise(ends)]
    bounds = pa.array([*chain.from_iterable(starts), ends[-1]], pa.int32())
    owned = pa.array(accumulate((len(each) for each in starts), initial=0), pa.int32())
    return pa.ListArray.from_arrays(owned, pa.ListArray.from_arrays(bounds, lists.values))


def _adding(states: pa.Array, records: pa.ListArray, sequences: Sequence[MergeSteps]) -> pa.Table:
    """Each sequence as the state that it begins with and the records that it adds."""
    is_batch: list[bool] = records.is_valid().to_pylist()
    starts = records.offsets.to_numpy()
    begins: list[int | None] = []
    ends, elements = [0], [np.empty(0, np.int64)]
    for merge_steps in sequences:
        begin: int | None = None
        count = 0
        for merge_step in merge_steps:
            assert not isinstance(merge_step, Mark)
            if is_batch[merge_step]:
                elements.append(np.arange(starts[merge_step], starts[merge_step + 1], dtype=np.int64))
                count += len(elements[-1])
            else:
                begin = merge_step
        begins.append(begin)
        ends.append(ends[-1] + count)
    taken = records.values.take(pa.array(np.concatenate(elements)))
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), taken)
    return pa.table({STATE: states.take(pa.array(begins, pa.int64())), RECORDS: lists})


def _merging(states: pa.Array, records: pa.ListArray, sequences: Sequence[MergeSteps]) -> pa.Table:
    """Each sequence as what is to be done with a stack of states, one after the other."""
    is_batch: list[bool] = records.is_valid().to_pylist()
    starts: list[int] = records.offsets.to_pylist()
    done: list[tuple[int, int | None, int | None]] = []
    ends = [0]
    for merge_steps in sequences:
        for merge_step in merge_steps:
            if isinstance(merge_step, Mark):
                done.append((BEGIN if merge_step is Mark.BEGIN else MERGE, None, None))
            elif is_batch[merge_step]:
                done += [(ADD, None, element) for element in range(starts[merge_step], starts[merge_step + 1])]
            else:
                done.append((STORED, merge_step, None))
        ends.append(len(done))
    do, of_state, of_record = ([each[at] for each in done] for at in range(3))
    columns = [
        pa.array(do, pa.int32()),
        states.take(pa.array(of_state, pa.int64())),
        records.values.take(pa.array(of_record, pa.int64())),
    ]
    steps_of = pa.StructArray.from_arrays(columns, names=[DO, STATE, RECORD])
    return pa.table({MERGE_STEPS: pa.ListArray.from_arrays(pa.array(ends, pa.int32()), steps_of)})


def nullable(kind: pa.DataType) -> pa.DataType:
    """The type in which anything may be null: what is a literal in one expression need not be one in the next."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, nullable(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, nullable(kind.item_type))
    return pa.list_(nullable(kind.value_type)) if pa.types.is_list(kind) else kind
