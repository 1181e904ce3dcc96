"""Opens stores for the endpoints: what a request reads, and the problem where a partition is elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from anyio import CapacityLimiter
from fastapi import Response

from streams_runtime.query.server.http_answers import naming_the_owner
from streams_runtime.query.server.url_parameters import LineParameters, StoreParameters
from streams_runtime.query.stores.composite import CompositeSegments, CompositeStore
from streams_runtime.query.stores.position_bound import parse_bound
from streams_runtime.query.stores.store_target import StoreTarget, target_of
from streams_runtime.query.stores.views import Entry, Queryable, StoreCodec, StoreType
from streams_runtime.query.wire.record_lines import RecordLines, RecordResponse, Walk

WALKS: Final = 8
"""Threads of an instance that walk over stores; all answers of many lines and all counts share them."""

C = TypeVar("C", CompositeStore, CompositeSegments)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoreReader(Generic[C]):
    """Reads the target of one request. `walks` are the threads for more than one record.

    Every method raises as `open_store` does, with Misdirected for a partition that is elsewhere.
    """

    target: StoreTarget
    open: Callable[[StoreTarget], C]
    walks: CapacityLimiter

    def at_key(self, key: bytes) -> StoreReader[C]:
        """Reads the partition of one key alone, where the request names none."""
        return replace(self, target=self.target.at_key(key))

    def read(self, do: Callable[[C], T]) -> T:
        """What `do` reads from the store."""
        with naming_the_owner(self.target):
            return do(self.open(self.target))

    def take(self, walk: Walk[Entry], most: int) -> Sequence[Entry]:
        """The next entries of a walk that `read` has opened, `most` at most."""
        with naming_the_owner(self.target):
            return walk.take(most)

    def lines(
        self,
        walk: Walk[Entry],
        shown: Callable[[StoreCodec, Entry], Mapping[str, object]],
        parameters: LineParameters,
    ) -> Response:
        """The answer of many lines; `shown` makes a line's object of an entry."""
        codec = self.target.codec

        def line(entry: Entry) -> Mapping[str, object]:
            return {**shown(codec, entry), "keyBytes": entry[0]} if parameters.key_bytes else shown(codec, entry)

        with naming_the_owner(self.target):
            return RecordResponse(RecordLines(walk, line, parameters.limit), self.walks)


@dataclass(frozen=True, slots=True)
class StoreReaders(Generic[C]):
    """Makes the readers of requests for stores of one type."""

    queryable: Queryable
    type: StoreType
    open: Callable[[StoreTarget], C]
    walks: CapacityLimiter

    def of(self, store: str, parameters: StoreParameters) -> StoreReader[C]:
        """The reader of one request. Raises as `target_of` and `parse_bound` do."""
        bound = parse_bound("position", parameters.position)
        target = target_of(self.queryable, store, self.type, parameters.partition, parameters.stale, bound)
        return StoreReader(target, self.open, self.walks)
