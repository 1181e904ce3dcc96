"""State side of tables whose every change counts: a batch's changes, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import ELEMENT, ORDER, ORDER_TIME, ORDINAL, OUT_VALUE
from streams_runtime.batch.late_records import Missed
from streams_runtime.batch.record_order import ordinals
from streams_runtime.batch.rows import moments
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.grouped_parts import ordinal_named
from streams_runtime.processors.aggregates.store_updates import store_keys
from streams_runtime.processors.aggregates.window_changes import held_in
from streams_runtime.processors.prefix_fold import BEGIN, replaced, steps
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.aggregates.merge_order import MergeSteps
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.shown_values import seen
from streams_runtime.state.store import Updates

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PerUpdate:
    """An aggregate's contents after each record of a batch, in turn, and what the stores will have at its end."""

    changes: StoreBatch
    updates: Mapping[int, Updates]
    late: int = 0
    missed: Sequence[Missed] = ()
    """These two as in store_updates.Merged."""


def in_order(store_batch: StoreBatch) -> StoreBatch:
    """The rows of a toTable in the order of their turns; of one topic they are already."""
    if pc.count_distinct(store_batch.columns["_topic"]).as_py() <= 1:
        return store_batch
    sort_keys = ordinals(store_batch.partitions.to_pylist(), store_batch.columns)
    order = pa.array(sorted(range(len(sort_keys)), key=sort_keys.__getitem__), pa.int64())
    columns = (store_batch.partitions, store_batch.keys, store_batch.timestamps, store_batch.columns)
    partitions, keys, timestamps, rest = (each.take(order) for each in columns)
    return replace(store_batch, partitions=partitions, keys=keys, timestamps=timestamps, columns=rest)


def merged_one_by_one(state: AggregateState, store_batch: StoreBatch, stores: Mapping[int, AnyStore]) -> PerUpdate:
    """What each record of a batch (change_by_change) makes of its key's or windows' contents; writes nothing.

    Raises:
        StreamsException: a total left its range, or a reduce failed.
        FailedProcessingException: a count has too many values, or a class in Python failed.
        ProcessorStateException: a store can't be read.
    """
    assert store_batch.within is not None
    keys = store_keys(store_batch)
    if not len(keys):
        return PerUpdate(_nothing(store_batch), {})
    rows = pa.table({"partition": store_batch.partitions, "key": keys, "order": store_batch.within[ORDER]})
    by_key = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in rows.column_names])
    rows, here = rows.take(by_key), by_key.to_pylist()
    where = list(zip(rows["partition"].to_pylist(), rows["key"].to_pylist(), strict=True))
    firsts = np.array([row for row, each in enumerate(where) if row == 0 or where[row - 1] != each])
    stored = _stored([where[row] for row in firsts.tolist()], stores)
    times = store_batch.timestamps.take(by_key).to_numpy().astype(np.int64)
    times[firsts] = np.maximum(times[firsts], [-1 if each is None else each[0] for each in stored])
    old = state.decode([None if each is None else each[1] for each in stored])
    batch = state.of_batch(store_batch.columns.take(by_key))
    begun = _with(state, state.without_sets(batch), firsts, state.without_sets(old))
    contents, times = _running(state, begun, times, firsts)
    if state.record_by_record:
        merge_steps, begins = _sequences(firsts, len(batch)), firsts.tolist()
        states = pa.concat_tables([old, batch])
        contents = state.per_update(
            states, merge_steps, contents, lambda number: ordinal_named(store_batch, here[begins[number]])
        )
    lasts: list[int] = (np.append(firsts[1:], len(where)) - 1).tolist()
    values = state.encode(contents.take(pa.array(lasts)), lambda each: ordinal_named(store_batch, here[lasts[each]]))
    updates: dict[int, Updates] = {}
    for partition in stores:
        mine = [(row, value) for row, value in zip(lasts, values, strict=True) if where[row][0] == partition]
        if mine:
            kept = ([where[row][1] for row, _ in mine], [value for _, value in mine])
            updates[partition] = Updates(*kept, [int(times[row]) for row, _ in mine])
    shown = pa.array(seen(state, contents, [True] * len(where)), pa.binary())
    return PerUpdate(_changes(store_batch, by_key, rows, times, shown), updates)


def _sequences(firsts: Numbers, rows: int) -> list[MergeSteps]:
    """The rows of each key, with its stored state before them: of a table of these states and then all rows."""
    starts = firsts + len(firsts)
    ends = np.append(starts[1:], rows + len(firsts))
    return [(key, *range(start, end)) for key, (start, end) in enumerate(zip(starts, ends, strict=True))]


def _stored(where: Sequence[tuple[int, bytes]], stores: Mapping[int, AnyStore]) -> list[tuple[int, bytes] | None]:
    """Time and state of each key, sorted by partition and key; None where there is none."""
    found: list[tuple[int, bytes] | None] = []
    for partition in dict.fromkeys(partition for partition, _ in where):
        keys = [key for each, key in where if each == partition]
        found += held_in(stores[partition], keys)
    return found


def _with(state: AggregateState, rows: pa.Table, firsts: Numbers, old: pa.Table) -> pa.Table:
    """The rows, the first one of each key together with what was there before."""
    return replaced(rows, firsts, state.merge(old, rows.take(firsts)))


def _running(state: AggregateState, rows: pa.Table, times: Numbers, firsts: Numbers) -> tuple[pa.Table, Numbers]:
    """Each row with all rows of its key before it, and the latest time of these.

    In so many steps as a key's number of rows can be halved: after each a row stands for twice as many.
    """
    before, times = np.arange(len(times)) - 1, times.copy()
    before[firsts] = BEGIN
    for earlier, later in steps(before):
        rows = replaced(rows, later, state.merge(rows.take(earlier), rows.take(later)))
        times[later] = np.maximum(times[later], times[earlier])
    return rows, times


def _changes(store_batch: StoreBatch, by_key: pa.Array, rows: pa.Table, times: Numbers, values: pa.Array) -> StoreBatch:
    """What the rows come to, in turn: each key's contents after each record, with the place of that."""
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in ("partition", "order", "key")])
    return changes_at(
        store_batch, by_key.take(order), rows["key"].take(order), pa.array(times).take(order), values.take(order)
    )


def _nothing(store_batch: StoreBatch) -> StoreBatch:
    """No change, in the columns that changes have."""
    times = pa.array([], pa.int64())
    return changes_at(store_batch, times, pa.array([], pa.binary()), times, pa.array([], pa.binary()))


def changes_at(
    store_batch: StoreBatch, rows: pa.Array, keys: pa.ChunkedArray | pa.Array, milliseconds: pa.Array, values: pa.Array
) -> StoreBatch:
    """Changes in turn, each at the place of a row of the batch; values are null where they are gone."""
    beside = store_batch.columns.take(rows)
    order_time = beside[ORDER_TIME] if ORDER_TIME in beside.column_names else beside["_timestamp"]
    topic, offset, timestamp = ORDINAL
    columns = {
        OUT_VALUE: values,
        topic: beside[topic],
        offset: beside[offset],
        timestamp: moments(milliseconds),
        ORDER_TIME: order_time,
        "_headers": beside["_headers"],
    }
    if ELEMENT in beside.column_names:
        columns[ELEMENT] = beside[ELEMENT]
    whole = keys if isinstance(keys, pa.ChunkedArray) else pa.chunked_array([keys])
    return StoreBatch(
        store_batch.node, store_batch.partitions.take(rows), whole, pa.chunked_array([milliseconds]), pa.table(columns)
    )
