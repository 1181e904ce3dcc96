"""Kafka Streams' KTableSuppressProcessor over InMemoryTimeOrderedKeyValueChangeBuffer, restated.

One task, no restart. A change is any value; where bytes are bounded it has a length. They are those that this project
counts, which leave out the old values that Kafka Streams' buffer holds too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

C = TypeVar("C")


class ModelFull(Exception):
    """BufferFullStrategy.SHUT_DOWN."""


@dataclass
class SuppressModel(Generic[C]):
    """`max_records` and `max_bytes`: None where Java has Long.MAX_VALUE. `emits`: BufferFullStrategy.EMIT."""

    within: int
    max_records: int | None = None
    max_bytes: int | None = None
    emits: bool = True
    observed: int = -1
    index: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    sorted_map: dict[tuple[int, bytes], C] = field(default_factory=dict)

    def process(self, key: bytes, time: int, change: C) -> Iterator[tuple[bytes, C]]:
        """What is forwarded with a record."""
        self.observed = max(self.observed, time)
        place = self.index.setdefault(key, (time, key))
        self.sorted_map[place] = change
        while self.sorted_map and min(self.sorted_map)[0] <= self.observed - self.within:
            yield self._evict()
        while self.over_capacity():
            if not self.emits:
                raise ModelFull
            yield self._evict()

    def over_capacity(self) -> bool:
        """KTableSuppressProcessor#overCapacity."""
        return (self.max_records is not None and len(self.index) > self.max_records) or (
            self.max_bytes is not None and self._buffer_size() > self.max_bytes
        )

    def _buffer_size(self) -> int:
        return sum(8 + len(key) + len(cast(Sized, change)) for (_, key), change in self.sorted_map.items())

    def _evict(self) -> tuple[bytes, C]:
        place = min(self.sorted_map)
        del self.index[place[1]]
        return place[1], self.sorted_map.pop(place)
