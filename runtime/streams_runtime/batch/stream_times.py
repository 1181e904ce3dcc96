"""When a record has its turn: by the time that its partition has come to with it (see
pipeline.windowing.record_ordinals.with_turns).

A scan knows that of the records that it reads, and nothing of those that are left to Spark. What both make is put
together afterwards: each record's turn is as late as the times of the other's records before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streams_runtime.batch.columns import ORDER_TIME

Vector = npt.NDArray[np.int64]
_NO_TIME = -1  # before all that records may have


def stream_times(logs: Vector, times: Vector) -> Vector:
    """The largest time of each row's log up to it."""
    order = np.argsort(logs, kind="stable")
    found = times[order]
    firsts = np.flatnonzero(np.diff(logs[order], prepend=-1)).tolist()
    for start, end in pairwise([*firsts, len(order)]):
        np.maximum.accumulate(found[start:end], out=found[start:end])
    come = np.empty_like(found)
    come[order] = found
    return come


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """The largest time that the records of each partition have come to."""

    _latest: dict[int, int] = field(default_factory=dict)

    def take(self, partitions: Vector, times: Vector) -> Vector:
        """What it is with each record, of records that come next in their partitions; -1 where none had a time yet.

        Times are 0 at least; -1 is none.
        """
        come = np.empty(len(times), np.int64)
        for number in np.unique(partitions).tolist():
            mine = np.flatnonzero(partitions == number)
            here = np.maximum(np.maximum.accumulate(times[mine]), self._latest.get(number, _NO_TIME))
            come[mine], self._latest[number] = here, int(here[-1])
        return come

    def order_times(self, partitions: pa.Array, times: pa.Array, readable: pa.BooleanArray) -> pa.Array:
        """The same for times of records, of which only those count that are `readable`."""
        known = times.cast(pa.int64()).to_numpy()
        if readable.true_count < len(readable):
            known = np.where(readable.to_numpy(zero_copy_only=False), known, _NO_TIME)
        return pa.array(self.take(partitions.to_numpy(), known)).cast(times.type)


def put_off(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows, each with the latest time of the others up to its offset as its turn where that is later.

    Both are of one topic and have `_partition`, `_offset` and TURN.
    """
    if not rows.num_rows or not others.num_rows:
        return rows
    partitions, offsets, times = (
        np.concatenate([_numbers(each, name) for each in (others, rows)])
        for name in ("_partition", "_offset", ORDER_TIME)
    )
    own = times[others.num_rows :].copy()
    times[others.num_rows :] = _NO_TIME
    order = np.argsort(offsets, kind="stable")
    come = np.empty(len(order), np.int64)
    come[order] = stream_times(partitions[order], times[order])
    order_times = pa.array(np.maximum(own, come[others.num_rows :])).cast(rows.schema.field(ORDER_TIME).type)
    return rows.set_column(rows.column_names.index(ORDER_TIME), ORDER_TIME, order_times)


def _numbers(rows: pa.Table, name: str) -> Vector:
    numbers: Vector = rows[name].cast(pa.int64()).to_numpy()
    return numbers
