"""What a fragment of a batch does to the sessions of its key, as KStreamSessionWindowAggregate does it; of times only.

It joins every session that lies at most the gap away, and comes too late if what comes of that has ended before all
that may still change. A fragment of several records is sure to be in time (pipeline.windowing.window_frames).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from streams_runtime.batch.columns import FRAGMENT_COLUMNS
from streams_runtime.batch.encode import encoded
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.state.aggregates.merge_order import Mark, MergeStep
from streams_runtime.state.window_keys import session_key, split_session_key
from streams_runtime.state.window_store import SessionStore
from streams_runtime.topology.nodes.window_kinds import SessionWindows


class Spanning(Protocol):
    """Anything from a first time to a last one, in ms."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


S = TypeVar("S", bound=Spanning)


@dataclass(slots=True)
class Fragment:
    """A run of a key's records that are sure to end in one session; `row` is its number in the batch. Times in ms."""

    start: int
    end: int
    order: int
    before: int
    """Stream time before it."""
    row: int


@dataclass(frozen=True, slots=True)
class Meeting(Generic[S]):
    """The sessions that a fragment joins, as Kafka Streams' stores have them, and the bounds of what comes of that.

    `late`: that has ended, and nothing comes of it.
    """

    joined: Sequence[S]
    start: int
    end: int
    late: bool


def fragments_by_key(store_batch: StoreBatch) -> dict[tuple[int, bytes], list[Fragment]]:
    """The fragments of each partition's keys, in their order."""
    assert store_batch.within is not None
    starts, ends, order, before = (store_batch.within[name].to_pylist() for name in FRAGMENT_COLUMNS)
    keys, partitions = encoded(store_batch.keys), store_batch.partitions.to_pylist()
    found: defaultdict[tuple[int, bytes], list[Fragment]] = defaultdict(list)
    for row in sorted(range(len(order)), key=order.__getitem__):
        fragment = Fragment(starts[row], ends[row], order[row], before[row], row)
        found[partitions[row], keys[row] or b""].append(fragment)
    return found


def stored_sessions(
    windows: SessionWindows, store: SessionStore, key: bytes, fragments: Sequence[Fragment]
) -> list[tuple[int, int, bytes]]:
    """Start, end and value of the key's sessions that its fragments may join. Raises as the store does."""
    first = min(each.start for each in fragments) - windows.gap
    last = max(each.end for each in fragments) + windows.gap
    there = [split_session_key(data)[1:] for data, _ in store.fetch(key, key, first, last)]
    values = store.get_stored([session_key(key, *each) for each in there])
    return [(*each, value) for each, value in zip(there, values, strict=True) if value is not None]


def meeting(windows: SessionWindows, there: Iterable[S], fragment: Fragment) -> Meeting[S]:
    """What a fragment does to the sessions of its key that there are when its turn comes."""
    gap, expired = windows.gap, fragment.before - windows.retention
    joined = [
        each
        for each in there
        if each.end >= fragment.start - gap and each.start <= fragment.end + gap and each.end > expired
    ]
    joined.sort(key=lambda each: (each.end, each.start))
    start = min([fragment.start, *(each.start for each in joined)])
    end = max([fragment.end, *(each.end for each in joined)])
    # Its own time does not move stream time if it is behind; a fragment that is ahead is in time.
    return Meeting(joined, start, end, end < fragment.before - windows.grace - gap)


def joined_steps(sessions: Sequence[list[MergeStep]], row: int) -> list[MergeStep]:
    """The merge steps (state.aggregates.merge_order) of sessions that become one by the fragment of a row; those of
    the first one are taken over.
    """
    if not sessions:
        return [Mark.BEGIN, row]
    merge_steps = sessions[0]
    for each in sessions[1:]:
        merge_steps += [*each, Mark.MERGE]
    merge_steps.append(row)
    return merge_steps
