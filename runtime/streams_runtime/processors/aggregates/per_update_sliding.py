"""State side of an aggregate by sliding windows of which every change counts: record by record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from streams_runtime.batch.stage import StoreBatch
from streams_runtime.processors.aggregates.per_update import PerUpdate, changes_at
from streams_runtime.processors.aggregates.sliding_order import Parts
from streams_runtime.processors.aggregates.sliding_windows import Change, SlidingBatch, sliding_updates
from streams_runtime.processors.prefix_fold import BEGIN, PrefixFold, replaced
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.shown_values import seen
from streams_runtime.state.window_keys import window_key


def per_update_sliding(state: AggregateState, store_batch: StoreBatch, stores: Mapping[int, AnyStore]) -> PerUpdate:
    """What each record of a batch makes of its key's windows, in the order in which it changes them; writes nothing.

    Raises as per_update.merged_one_by_one does.
    """
    found: list[Change] = []
    batch = SlidingBatch(state, store_batch, stores, found)
    missed = batch.take_all()
    late = sum(len(starts) for *_, starts in missed)
    folds, left = PrefixFold(), list(batch.windows())
    links = _linked(folds, [window.parts for window in (*(each for *_, each in found), *(each for _, each in left))])
    states = folds.states(state.without_sets(batch.rows), state.merge)
    if state.record_by_record:
        states = _one_by_one(state, batch, folds, states)
    contents = states.take(pa.array(links, pa.int64()))
    stored = state.encode(contents.slice(len(found)), lambda number: batch.named_key(left[number][0]))
    updates = sliding_updates(left, stored)
    by_partition = sorted(range(len(found)), key=lambda number: found[number][1][0])
    shown = seen(state, contents.slice(0, len(found)), [True] * len(found))
    emitted = [(*found[number], shown[number]) for number in by_partition]
    changes = changes_at(
        store_batch,
        pa.array([row for row, *_ in emitted], pa.int64()),
        pa.array([window_key(key, window.start) for _, (_, key), window, _ in emitted], pa.binary()),
        pa.array([window.latest for *_, window, _ in emitted], pa.int64()),
        pa.array([value for *_, value in emitted], pa.binary()),
    )
    return PerUpdate(changes, updates, late, missed)


def _one_by_one(state: AggregateState, batch: SlidingBatch, folds: PrefixFold, states: pa.Table) -> pa.Table:
    """The states of the links, of aggregates that take records in turn as well.

    What several chains begin with is worked out for each: windows have no more records than they tell changes.
    """
    paths = folds.paths()
    # A chain begins with a record, or with a state that is there.
    there = np.array([link for link, row in enumerate(folds.rows) if not batch.is_record(row)], np.int64)
    states = replaced(
        states, there, batch.rows.take(pa.array([folds.rows[link] for link in there.tolist()], pa.int64()))
    )
    links = np.array([link for path in paths for link in path if batch.is_record(folds.rows[link])], np.int64)
    merge_steps = [[folds.rows[link] for link in path] for path in paths]
    begun = states.take(pa.array(links))
    emitted = state.per_update(batch.rows, merge_steps, begun, lambda number: batch.named(merge_steps[number]))
    return replaced(states, links, emitted)


def _linked(folds: PrefixFold, several: Sequence[Parts]) -> list[int]:
    """The link of each window's parts; what windows share is there once."""
    links: dict[int, int] = {}
    found = []
    for parts in several:
        new = []
        here = parts
        while here is not None and id(here) not in links:
            new.append(here)
            here = here[0]
        link = BEGIN if here is None else links[id(here)]
        for each in reversed(new):
            link = links[id(each)] = folds.add(link, each[1])
        found.append(link)
    return found
