"""What stores of windows still show while a batch goes on: of what has expired a join finds nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.window_store import SegmentedStore
from streams_runtime.topology.table_parts import TablePart

At = tuple[int, bytes]
Held = tuple[int | None, bytes | None]
_NOTHING: Held = (None, None)


@dataclass(slots=True)
class StoreClock:
    """Stream time of the stores of a part's sources (by partition and source), as a batch's changes let it come.

    As in Kafka Streams' segmented stores it is the largest time in a key that was written. Other stores have none.
    """

    stores: Mapping[tuple[int, int], SegmentedStore]
    times: dict[tuple[int, int], int]

    @classmethod
    def of(cls, part: TablePart, tasks: Mapping[int, Mapping[str, AnyStore]]) -> StoreClock:
        """That of the beginning of a batch."""
        if not part.is_windowed:
            return cls({}, {})
        stores = {
            (partition, number): store
            for partition, of_task in tasks.items()
            for number, node in enumerate(part.sources)
            if isinstance(store := of_task[node.store], SegmentedStore)
        }
        return cls(stores, {where: store.stream_time for where, store in stores.items()})

    def put(self, at: At, source: int) -> None:
        """A source has a row, or a deletion, for a key (of the store) from now on."""
        where = (at[0], source)
        if (store := self.stores.get(where)) is not None:
            self.times[where] = max(self.times[where], store.keys.segment_time(at[1]))

    def shown(self, at: At, held: Sequence[Held]) -> Sequence[Held]:
        """What of that which each source holds for a key a join finds there now."""
        if not self.stores:
            return held
        return [_NOTHING if self._is_gone(at, source) else each for source, each in enumerate(held)]

    def _is_gone(self, at: At, source: int) -> bool:
        store = self.stores.get((at[0], source))
        if store is None:
            return False
        return store.keys.segment_time(at[1]) <= self.times[at[0], source] - store.retention
