"""Aggregates of several parts each: rows of stored states and of a batch's, put together in few steps.

Those in Python are the exception: their parts are taken one after the other, as the merge steps say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from streams_runtime.batch.stage import StoreBatch
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.merge_order import MergeSteps, rows_of

Together = Callable[[pa.Table, pa.Table], pa.Table]
"""The states of two tables with as many rows, row by row together."""


def put_in_order(
    state: AggregateState,
    rows: pa.Table,
    merge_steps: Sequence[MergeSteps],
    together: Together,
    named: Callable[[int], str],
) -> pa.Table:
    """One state for each of `merge_steps`, over `rows`; `together` is the state's merge or join; `named`: see `played`.

    Raises what `together` raises, and UserCodeException: a class in Python failed.
    """
    contents = put_together(state.without_sets(rows), [rows_of(each) for each in merge_steps], together)
    return state.played(rows, merge_steps, contents, named)


def ordinal_named(store_batch: StoreBatch, row: int) -> str:
    """What messages call the key of a row of a batch."""
    key: Any = store_batch.keys[row].as_py()
    return f"the key {key!r} in partition {store_batch.partitions[row].as_py()}"


def put_together(rows: pa.Table, parts: Sequence[Sequence[int]], together: Together) -> pa.Table:
    """One state for each of `parts`, which are numbers of `rows`, at least one each: neighbours first, in their order.

    Raises what `together` raises.
    """
    owners = np.repeat(np.arange(len(parts)), [len(each) for each in parts])
    contents = rows.take(pa.array(chain.from_iterable(parts), pa.int64(), size=len(owners)))
    while len(owners) > len(parts):
        numbers = np.arange(len(owners)) - np.searchsorted(owners, owners)  # of each among its owner's
        firsts = np.flatnonzero(numbers % 2 == 0)
        followed = np.append(numbers, 0)[firsts + 1] % 2 == 1
        pairs, alone = firsts[followed], firsts[~followed]
        merged = together(contents.take(pairs), contents.take(pairs + 1)).cast(contents.schema)
        order = np.argsort(np.concatenate([pairs, alone]), kind="stable")
        contents, owners = pa.concat_tables([merged, contents.take(alone)]).take(order), owners[firsts]
    return contents
