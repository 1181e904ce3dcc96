"""Opens stores for the endpoints: the local partitions that a request asks for, and what to say where they are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from anyio import CapacityLimiter
from fastapi import Response

from streams_runtime.kafka.partitioner import partition_for
from streams_runtime.query.answers import naming_the_owner
from streams_runtime.query.composite import CompositeSegments, CompositeStore
from streams_runtime.query.handles import check_store, open_composite, open_segments
from streams_runtime.query.parameters import parse_key
from streams_runtime.query.records import RecordLines, RecordResponse, Walk
from streams_runtime.query.views import Entry, Queryable, StoreCodec, StoreType

WALKS: Final = 8
"""Threads of an instance that walk over stores; each takes turns among all answers of many lines, and all counts."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request says about where to read: a store's kind, its name, and which partitions here; `walks` are the
    threads for more than one record.

    Every method raises as `handles.open_store` does, with Misdirected for a partition that is elsewhere.
    """

    queryable: Queryable
    type: StoreType
    store: str
    partitions: list[int] | None
    stale: bool
    walks: CapacityLimiter

    @property
    def codec(self) -> StoreCodec:
        """How the store's bytes are read."""
        return self.queryable.codec(self.store)

    def check(self) -> None:
        """Raise unless the store is there, is of this kind, and the client can be asked."""
        check_store(self.queryable, self.store, self.type)

    def for_key(self, data: bytes) -> Asked:
        """The same for the partition of one key alone, where the request names none."""
        own = partition_for(data, self.queryable.partition_count(self.store))
        partitions = [own] if self.partitions is None else self.partitions
        return replace(self, partitions=partitions)

    def bounds(self, from_key: str | None, to_key: str | None) -> tuple[bytes | None, bytes | None]:
        """The bytes of two keys that the parameters `from` and `to` give; None is an open end."""
        codec = self.codec
        first, last = (
            None if text is None else parse_key(codec, self.store, name, text)[1]
            for name, text in (("from", from_key), ("to", to_key))
        )
        return first, last

    def read(self, do: Callable[[CompositeStore], T]) -> T:
        """What `do` reads from a key-value store."""
        with naming_the_owner(self.queryable, self.store, self.partitions or ()):
            return do(open_composite(self.queryable, self.store, self.type, self.partitions, self.stale))

    def next_of(self, walk: Walk[Entry], most: int) -> Sequence[Entry]:
        """The next entries of a walk that was opened here."""
        with naming_the_owner(self.queryable, self.store, self.partitions or ()):
            return walk.take(most)

    def read_segments(self, do: Callable[[CompositeSegments], T]) -> T:
        """What `do` reads from a window or session store."""
        with naming_the_owner(self.queryable, self.store, self.partitions or ()):
            return do(open_segments(self.queryable, self.store, self.type, self.partitions, self.stale))

    def lines(
        self,
        walk: Walk[Entry],
        shown: Callable[[Entry], Mapping[str, object]],
        key_bytes: bool,
        limit: int | None,
    ) -> Response:
        """The answer of many lines, `limit` records at most; `shown` makes a line's object of an entry."""

        def line(entry: Entry) -> Mapping[str, object]:
            return {**shown(entry), "keyBytes": entry[0]} if key_bytes else shown(entry)

        with naming_the_owner(self.queryable, self.store, self.partitions or ()):
            return RecordResponse(RecordLines(walk, line, limit), self.walks)
