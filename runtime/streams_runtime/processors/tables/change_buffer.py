"""Changes that wait for later ones of their key: Kafka Streams' buffer of a suppress, over one batch of a partition.

It follows KTableSuppressProcessorSupplier and InMemoryTimeOrderedKeyValueChangeBuffer. It knows keys, times and bytes
only, and writes nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from streams_runtime.state.store import Updates
from streams_runtime.state.suppress_store import (
    STREAM_TIME,
    Place,
    Waiting,
    change_key,
    placed,
    size_of,
    stream_time_value,
)
from streams_runtime.topology.nodes.suppress_node import SuppressNode


@dataclass(frozen=True, slots=True)
class Passed:
    """A change that goes on: that of `key`, packed; None: the one that the store holds."""

    key: bytes
    change: bytes | None


class BufferFull(Exception):
    """More waits than may, and nothing may go on early."""

    def __init__(self, records: int, size: int) -> None:
        """How many keys have a change that waits, and the bytes of these."""
        super().__init__(records, size)
        self.records = records
        self.size = size


@dataclass(slots=True)
class ChangeBuffer:
    """The changes of one partition that wait: those that its store holds (`held`), with what a batch adds and takes.

    A change waits from the time of the first one of its key; later ones take its place and keep that time. With each
    change stream time moves on to its time, and then all go on, oldest first, whose time lies `within` behind that; of
    one time those with the smaller keys.
    """

    node: SuppressNode
    held: Waiting
    _stream_time: int = field(init=False)
    _records: int = field(init=False)
    _bytes: int = field(init=False)
    _taken: int = 0  # how many of the changes that the store holds, in their order, have gone on
    _gone: set[bytes] = field(default_factory=set)  # their keys
    _new: list[Place] = field(default_factory=list)  # a heap of those that the store does not hold
    _changes: dict[bytes, tuple[int, bytes]] = field(
        default_factory=dict
    )  # by key: since when it waits, what the batch has

    def __post_init__(self) -> None:
        self._stream_time, self._records, self._bytes = self.held.stream_time, len(self.held.order), self.held.size

    def put(self, key: bytes, time: int, change: bytes) -> Iterator[Passed]:
        """A key's next change, packed, at a time in ms: what goes on with it, in order.

        Raises BufferFull: more waits than may.
        """
        self._stream_time = max(self._stream_time, time)
        first, size = self._waits(key)
        if first is None:
            first = time
            heapq.heappush(self._new, (first, key))
            self._records += 1
        self._changes[key] = first, change
        self._bytes += size_of(key, change) - size
        while (oldest := self._oldest()) is not None and oldest[0] <= self._stream_time - self.node.within:
            yield self._take(oldest)
        while self._is_over() and (oldest := self._oldest()) is not None:
            if self.node.full == "fail":
                raise BufferFull(self._records, self._bytes)
            yield self._take(oldest)

    def updates(self) -> Updates:
        """What the store will hold otherwise than before, in order of its keys; empty if nothing is other."""
        keys = sorted(self._changes.keys() | self._gone)
        found: list[tuple[bytes, bytes | None, int]] = []
        for key in keys:
            waits = self._changes.get(key)
            found.append((change_key(key), None if waits is None else placed(*waits), self._stream_time))
        if self._stream_time != self.held.stream_time:
            found.append((STREAM_TIME, stream_time_value(self._stream_time), self._stream_time))
        return Updates([key for key, *_ in found], [value for _, value, _ in found], [time for *_, time in found])

    def _waits(self, key: bytes) -> tuple[int | None, int]:
        """Since when a change of the key waits, and its bytes; None and 0: none does."""
        if (waits := self._changes.get(key)) is not None:
            return waits[0], size_of(key, waits[1])
        if key in self._gone:
            return None, 0
        return self.held.first.get(key), self.held.sizes.get(key, 0)

    def _oldest(self) -> Place | None:
        held = self.held.order[self._taken] if self._taken < len(self.held.order) else None
        new = self._new[0] if self._new else None
        return min(each for each in (held, new) if each is not None) if held or new else None

    def _take(self, place: Place) -> Passed:
        _, key = place
        self._bytes -= self._waits(key)[1]
        self._records -= 1
        if self._new and self._new[0] == place:
            heapq.heappop(self._new)
        else:
            self._taken += 1
            self._gone.add(key)
        waits = self._changes.pop(key, None)
        return Passed(key, None if waits is None else waits[1])

    def _is_over(self) -> bool:
        node = self.node
        return (node.records is not None and self._records > node.records) or (
            node.bytes is not None and self._bytes > node.bytes
        )
