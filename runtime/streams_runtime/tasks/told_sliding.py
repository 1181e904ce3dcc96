"""State side of an aggregate by sliding windows of which every change counts: record by record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from streams_runtime.pipeline.runner import Keyed
from streams_runtime.state.aggregates import AggregateState
from streams_runtime.state.shown import seen
from streams_runtime.state.stores import AnyStore
from streams_runtime.state.window_keys import window_key
from streams_runtime.tasks.chains import BEGIN, Chains
from streams_runtime.tasks.sliding import Change, SlidingBatch, sliding_updates
from streams_runtime.tasks.sliding_turns import Parts
from streams_runtime.tasks.told import Told, changes_at


def told_sliding(state: AggregateState, keyed: Keyed, stores: Mapping[int, AnyStore]) -> Told:
    """What each record of a batch makes of its key's windows, in the order in which it changes them; writes nothing.

    Raises as told_windows.told_one_by_one does.
    """
    assert not state.in_turn  # such aggregates are refused
    found: list[Change] = []
    batch = SlidingBatch(state, keyed, stores, found)
    missed = batch.take_all()
    late = sum(len(starts) for *_, starts in missed)
    updates = sliding_updates(list(batch.windows()), state.encode(batch.settle()))
    chains = Chains()
    links = pa.array(_linked(chains, [window.parts for *_, window in found]), pa.int64())
    contents = chains.states(batch.rows, state.merge).take(links)
    by_partition = sorted(range(len(found)), key=lambda number: found[number][1][0])
    shown = seen(state, contents, [True] * len(contents))
    told = [(*found[number], shown[number]) for number in by_partition]
    changes = changes_at(
        keyed,
        pa.array([row for row, *_ in told], pa.int64()),
        pa.array([window_key(key, window.start) for _, (_, key), window, _ in told], pa.binary()),
        pa.array([window.latest for *_, window, _ in told], pa.int64()),
        pa.array([value for *_, value in told], pa.binary()),
    )
    return Told(changes, updates, late, missed)


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
