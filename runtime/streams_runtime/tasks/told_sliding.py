"""State side of an aggregate by sliding windows of which every change counts: record by record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from streams_runtime.pipeline.stage import Keyed
from streams_runtime.state.aggregates import AggregateState
from streams_runtime.state.shown import seen
from streams_runtime.state.stores import AnyStore
from streams_runtime.state.window_keys import window_key
from streams_runtime.tasks.chains import BEGIN, Chains, replaced
from streams_runtime.tasks.sliding import Change, SlidingBatch, sliding_updates
from streams_runtime.tasks.sliding_turns import Parts
from streams_runtime.tasks.told import Told, changes_at


def told_sliding(state: AggregateState, keyed: Keyed, stores: Mapping[int, AnyStore]) -> Told:
    """What each record of a batch makes of its key's windows, in the order in which it changes them; writes nothing.

    Raises as told_windows.told_one_by_one does.
    """
    found: list[Change] = []
    batch = SlidingBatch(state, keyed, stores, found)
    missed = batch.take_all()
    late = sum(len(starts) for *_, starts in missed)
    chains, left = Chains(), list(batch.windows())
    links = _linked(chains, [window.parts for window in (*(each for *_, each in found), *(each for _, each in left))])
    states = chains.states(batch.rows, state.merge)
    if state.in_turn:
        states = _one_by_one(state, batch, chains, states)
    contents = states.take(pa.array(links, pa.int64()))
    updates = sliding_updates(left, state.encode(contents.slice(len(found))))
    by_partition = sorted(range(len(found)), key=lambda number: found[number][1][0])
    shown = seen(state, contents.slice(0, len(found)), [True] * len(found))
    told = [(*found[number], shown[number]) for number in by_partition]
    changes = changes_at(
        keyed,
        pa.array([row for row, *_ in told], pa.int64()),
        pa.array([window_key(key, window.start) for _, (_, key), window, _ in told], pa.binary()),
        pa.array([window.latest for *_, window, _ in told], pa.int64()),
        pa.array([value for *_, value in told], pa.binary()),
    )
    return Told(changes, updates, late, missed)


def _one_by_one(state: AggregateState, batch: SlidingBatch, chains: Chains, states: pa.Table) -> pa.Table:
    """The states of the links, of aggregates that take records in turn as well.

    What several chains begin with is worked out for each: windows have no more records than they tell changes.
    """
    paths = chains.paths()
    links = np.array([link for path in paths for link in path if batch.is_record(chains.rows[link])], np.int64)
    turns = [[chains.rows[link] for link in path] for path in paths]
    told = state.told(batch.rows, turns, states.take(pa.array(links)), lambda number: batch.named(turns[number]))
    return replaced(states, links, told)


def _linked(chains: Chains, several: Sequence[Parts]) -> list[int]:
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
            link = links[id(each)] = chains.add(link, each[1])
        found.append(link)
    return found
