"""State side of a join: what the table holds for each record's key when the record's turn comes.

Records and the table's changes have one order (batch.record_order). What the batch does not change is as the store has
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import MATCH, OUT_VALUE
from streams_runtime.batch.encode import encoded_column
from streams_runtime.batch.record_order import Vector, order_among
from streams_runtime.batch.stage import StageInput, StoreBatch
from streams_runtime.batch.vectors import integers
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.joins.table_matches import asked_once, values_taken
from streams_runtime.processors.joins.versioned_join import matched_versions
from streams_runtime.state.open_store import key_value_store, versioned_store
from streams_runtime.state.shown_values import Shown
from streams_runtime.state.store import KeyValueStore, unstamp
from streams_runtime.topology.nodes.join_node import JoinNode


def apply(given: StageInput, context: ApplyContext) -> Applied:
    """The records that go on, each with what the table holds for its key."""
    node = given.node
    assert isinstance(node, JoinNode)
    (spec,) = (store for store in context.sub.stores if store.node == node.table)
    if spec.history is not None:
        versioned = {partition: versioned_store(of_task, spec.name) for partition, of_task in context.stores.items()}
        return Applied(rows=matched_versions(given, context.changes.get(node.table), versioned))
    stores = {partition: key_value_store(of_task, spec.name) for partition, of_task in context.stores.items()}
    return Applied(rows=matched(given, context.changes.get(node.table), stores, context.spark.shown_by(node.table)))


def matched(join: StageInput, changes: StoreBatch | None, stores: Mapping[int, KeyValueStore], show: Shown) -> pa.Table:
    """The records that go on, each with what the table holds for its key (MATCH); of an inner join those with a match.

    `changes` are the batch's changes of the table, nothing of which is in the stores yet; `show` makes what the stores
    hold what a join sees.

    Raises ProcessorStateException: a store can't be read.
    """
    partitions = join.rows["_partition"].to_numpy().astype(np.int64)
    keys = encoded_column(join.rows["_key"])
    if changes is None or not len(changes.keys):
        asked, numbers = asked_once(partitions, keys)
        values = [_held(asked, stores, show)]
    else:
        changing = changes.partitions.to_numpy().astype(np.int64)
        changed = encoded_column(changes.keys)
        both = pa.concat_arrays([changed, keys])
        asked, whose = asked_once(np.concatenate([changing, partitions]), both)
        order_numbers = order_among((changing, changes.columns), (partitions, join.rows))
        latest = _latest(whose, np.concatenate(order_numbers), len(changed))
        of_records = whose[len(changed) :]
        numbers = np.where(latest < 0, of_records, len(asked) + latest)
        values = [_held(asked, stores, show), *changes.columns[OUT_VALUE].chunks]
    there = keys.is_valid().to_numpy(zero_copy_only=False)
    rows = join.rows.append_column(MATCH, values_taken(values, integers(numbers, there)))
    assert isinstance(join.node, JoinNode)
    return rows if join.node.left else rows.filter(rows[MATCH].is_valid())


def _held(asked: pa.Table, stores: Mapping[int, KeyValueStore], show: Shown) -> pa.BinaryArray:
    """What the stores have for these keys, before the batch."""
    found: list[bytes | None] = [None] * len(asked)
    order = pc.sort_indices(asked, sort_keys=[("partition", "ascending"), ("key", "ascending")])
    order = order.filter(asked["key"].take(order).is_valid())
    ordered = asked.take(order)
    partitions = ordered["partition"].to_numpy()
    firsts = np.flatnonzero(np.diff(partitions, prepend=-1)).tolist()
    keys, rows = ordered["key"].to_pylist(), order.to_pylist()
    for start, end in pairwise([*firsts, len(partitions)]):
        stored = stores[int(partitions[start])].get_stored(keys[start:end])
        shown = show([None if each is None else unstamp(each)[1] for each in stored])
        for row, value in zip(rows[start:end], shown, strict=True):
            found[row] = value
    return pa.array(found, pa.binary())


def _latest(whose: Vector, order_numbers: Vector, changes: int) -> Vector:
    """Of each record, which stand behind so many changes, the last change before its turn of what it asks; -1: none."""
    order = np.lexsort((order_numbers, whose))
    at = np.arange(len(order))
    last = np.maximum.accumulate(np.where(order < changes, at, -1))
    begin = np.maximum.accumulate(np.where(np.diff(whose[order], prepend=-1) != 0, at, 0))
    found = np.empty(len(order), np.int64)
    found[order] = np.where(last >= begin, order[last], -1)
    return found[changes:]
