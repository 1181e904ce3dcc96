"""A join of two streams, record by record: what a record meets, what stays alone, and whose window has closed.

Decides as KStreamKStreamJoin does, over what one partition's stores hold and without touching them. Two things of it
are left out that only save time there and let results wait: it looks for closed windows at most once a second by the
clock, and not before a time that it remembers from the last look.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from streams_runtime.processors.segment_buffer import NO_TIME, SegmentBuffer
from streams_runtime.state.unjoined_records import Ordinal
from streams_runtime.topology.nodes.stream_join_node import Side, StreamJoinNode


@dataclass(frozen=True, slots=True)
class Result:
    """One result. `row` is the record that brought it about; `alone`: it is not of that record, but of an older one."""

    row: int
    key: bytes | None
    time: int
    left: bytes | None
    right: bytes | None
    alone: bool = False


@dataclass(slots=True)
class Alone:
    """Records without a match as they come to be: values by place, of all places that the batch may touch."""

    stream_time: int = NO_TIME
    held: dict[Ordinal, list[bytes]] = field(default_factory=dict)
    changed: set[Ordinal] = field(default_factory=set)
    _waiting: dict[Side, list[Ordinal]] = field(default_factory=lambda: {side: [] for side in Side})

    def wait_for(self, ordinals: Iterable[Ordinal]) -> None:
        """Places that are held, and whose windows may close."""
        for ordinal in ordinals:
            self._waiting[ordinal[1]].append(ordinal)
        for side in Side:
            heapify(self._waiting[side])

    def add(self, ordinal: Ordinal, value: bytes) -> None:
        """One record more without a match."""
        self.held.setdefault(ordinal, []).append(value)
        self.changed.add(ordinal)
        heappush(self._waiting[ordinal[1]], ordinal)

    def drop(self, ordinal: Ordinal) -> None:
        """The records at a place have met another, or were passed on."""
        if self.held.pop(ordinal, None) is not None:
            self.changed.add(ordinal)

    def closed(self, node: StreamJoinNode) -> Iterator[tuple[Ordinal, bytes]]:
        """The records whose windows stream time has closed; in order, and gone from here."""
        found = set()
        for side, waiting in self._waiting.items():
            passed = node.ahead(side) + node.grace
            while waiting and waiting[0][0] + passed < self.stream_time:
                found.add(heappop(waiting))
        for ordinal in sorted(found):
            for value in self.held.get(ordinal, ()):
                yield ordinal, value
            self.drop(ordinal)


@dataclass(slots=True)
class PartitionJoin:
    """The join of one partition while a batch's records take their turns. `alone` is None for an inner join."""

    node: StreamJoinNode
    sides: dict[Side, SegmentBuffer]
    alone: Alone | None
    results: deque[Result] = field(default_factory=deque)
    dropped: int = 0
    keyless: int = 0
    """How many of those that were dropped have no key."""

    def take(self, row: int, side: Side, key: bytes | None, time: int, value: bytes | None) -> None:
        """The next record: one of `side`, without a value where that is None."""
        node, alone = self.node, self.alone
        if alone is not None:
            alone.stream_time = max(alone.stream_time, time)
        if key is None and value is not None and node.keeps_alone(side):
            self._pass_on(row, side, key, time, value)
            return
        if key is None or value is None:
            self.dropped += 1
            self.keyless += key is None
            return
        if alone is not None and time == alone.stream_time:
            for (then, whose, old_key), old in alone.closed(node):
                if node.keeps_alone(whose):  # an upgrade from outer to left leaves some of the other side
                    self._pass_on(row, whose, old_key, then, old, alone=True)
        last = time + node.ahead(side)
        met = False
        for then, other in self.sides[side.other].between(key, time - node.behind(side), last):
            met = True
            if alone is not None:
                alone.drop((then, side.other, key))
            self._pass_on(row, side, key, max(time, then), value, other)
        if not met and node.keeps_alone(side) and alone is not None:
            if last < alone.stream_time:
                self._pass_on(row, side, key, time, value)
            else:
                alone.add((time, side, key), value)
        self.sides[side].put(key, time, value)

    def _pass_on(
        self,
        row: int,
        side: Side,
        key: bytes | None,
        time: int,
        value: bytes,
        other: bytes | None = None,
        *,
        alone: bool = False,
    ) -> None:
        left, right = (value, other) if side is Side.LEFT else (other, value)
        self.results.append(Result(row, key, time, left, right, alone))
