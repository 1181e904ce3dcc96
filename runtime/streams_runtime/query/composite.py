"""The local partitions of a store as one: a key finds its partition, scans are merged in key order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import itemgetter
from typing import TypeVar

from streams_runtime.errors import IllegalStateException, InvalidStateStorePartitionException
from streams_runtime.kafka.partitioner import partition_for
from streams_runtime.query.verdicts import Found, Situation, check, named, settled
from streams_runtime.query.views import Entry, EntryIterator, Queryable, StoreView, ViewClosed

T = TypeVar("T")


def situation_of(
    needed: Collection[int],
    held: Mapping[int, StoreView],
    live: Mapping[int, StoreView],
    expected: Collection[int],
) -> tuple[Situation, tuple[int, ...]]:
    """What became of the `needed` partitions, and which of them the verdict is about.

    `held` are the views that a handle has read before: a closed one stays closed for it, even where the
    partition has come back as another view. Nothing needed and nothing here is ELSEWHERE.
    """
    present = {**live, **held}
    closed = [p for p in needed if p in present and not present[p].is_open]
    missing = [p for p in needed if p not in present]
    elsewhere = [p for p in missing if p not in expected]
    if closed:
        return Situation.CLOSED, tuple(closed)
    if elsewhere or not needed:
        return Situation.ELSEWHERE, tuple(elsewhere)
    if missing:
        return Situation.RESTORING, tuple(missing)
    return Situation.OPEN, ()


class CompositeStore:
    """Reads bytes from the local partitions of `store`: all of them, or exactly those of `only`.

    It holds on to each view that it has read, so a partition that moved away is an exception and never a
    shorter answer. Partitions that arrive later are read too. Usable from several threads.

    Every method, the constructor included, raises what `verdicts.check` says for the client's state and for
    the partitions that the method needs. Keys are ordered by their bytes.
    """

    def __init__(self, queryable: Queryable, store: str, only: Collection[int] | None = None) -> None:
        self._queryable = queryable
        self._store = store
        self._only = None if only is None else frozenset(only)
        self._held: dict[int, StoreView] = {}
        self._readable()

    def get(self, key: bytes) -> bytes | None:
        """The value's bytes, or None where the store has no such key."""
        partition = partition_for(key, self._queryable.partition_count(self._store))
        (view,) = self._readable(partition)
        return self._reading((view,), lambda: view.get(key))

    def scan(self, start: bytes | None, end: bytes | None, reverse: bool = False) -> MergedEntries:
        """Entries from `start` to `end`, both inclusive, None an open end."""
        return self._merged(lambda view: view.scan(start, end, reverse=reverse), reverse)

    def prefix_scan(self, prefix: bytes) -> MergedEntries:
        """Entries whose key begins with `prefix`."""
        return self._merged(lambda view: view.prefix_scan(prefix), reverse=False)

    def approximate_num_entries(self) -> int:
        """The partitions' own estimates, added."""
        views = self._readable()
        return self._reading(views, lambda: sum(view.approximate_num_entries() for view in views))

    def count(self) -> int:
        """How many entries there are, by walking over all of them."""
        with self.scan(None, None) as entries:
            return sum(1 for _ in entries)

    def _readable(self, key_partition: int | None = None) -> tuple[StoreView, ...]:
        """The open views of all partitions that are asked for, or of the one that a key is in."""
        queryable, store, held = self._queryable, self._store, self._held
        before = queryable.state
        live = queryable.views(store)
        expected = queryable.expected_partitions(store)
        if key_partition is not None:
            needed: Collection[int] = (key_partition,)
        else:
            needed = {*live, *held, *expected} if self._only is None else self._only
        situation, partitions = situation_of(needed, held, live, expected)
        check(settled(before, queryable.state), self._found(situation, partitions))
        if key_partition is not None and self._only is not None and key_partition not in self._only:
            raise InvalidStateStorePartitionException(
                f"store {store!r}: the key is in partition {key_partition}, and the handle was made for"
                f" {named(self._only)} alone; ask a handle that has the key's partition"
            )
        views = {partition: held.get(partition) or live[partition] for partition in sorted(needed)}
        self._held = {**self._held, **views}
        return tuple(views.values())

    def _merged(self, open_scan: Callable[[StoreView], EntryIterator], reverse: bool) -> MergedEntries:
        views = self._readable()
        scans: list[EntryIterator] = []
        try:
            for view in views:
                self._reading((view,), lambda view=view: scans.append(open_scan(view)))  # type: ignore[misc]
        except BaseException:
            for scan in scans:
                scan.close()
            raise
        return MergedEntries(scans, reverse, lambda broken: self._guard(views, broken))

    def _reading(self, views: tuple[StoreView, ...], read: Callable[[], T]) -> T:
        """Do `read`; a partition that closes under it is judged by the client's state."""
        try:
            return read()
        except ViewClosed:
            self._guard(views, broken=True)
            raise

    def _guard(self, views: tuple[StoreView, ...], broken: bool) -> None:
        """Raise unless `views` are open and the client RUNNING; `broken` says that a read has failed."""
        closed = tuple(view.partition for view in views if not view.is_open)
        if broken and not closed:
            closed = tuple(view.partition for view in views)
        situation = Situation.CLOSED if closed else Situation.OPEN
        check(self._queryable.state, self._found(situation, closed))

    def _found(self, situation: Situation, partitions: tuple[int, ...]) -> Found:
        count = self._queryable.partition_count(self._store)
        return Found(self._store, situation, partitions, count, self._queryable.url)


class MergedEntries:
    """Entries of several partitions in key order. `guard` is asked before each step, and raises to forbid it.

    A step that was refused because the client is REBALANCING may be tried again on the same iterator.
    """

    def __init__(self, scans: list[EntryIterator], reverse: bool, guard: Callable[[bool], None]) -> None:
        self._scans = scans
        self._entries: Iterator[Entry] = (
            scans[0] if len(scans) == 1 else heapq.merge(*scans, key=itemgetter(0), reverse=reverse)
        )
        self._guard = guard
        self._next: Entry | None = None
        self._broken = False
        self._ended = False
        self._closed = False

    def __iter__(self) -> MergedEntries:
        return self

    def __next__(self) -> Entry:
        entry = self.peek()
        if entry is None:
            raise StopIteration
        self._next = None
        return entry

    def peek(self) -> Entry | None:
        """The entry that the next step gives, or None at the end.

        Raises:
            IllegalStateException: the iterator was closed by its user.
            InvalidStateStoreException: a subclass, as `guard` says.
        """
        if self._closed:
            raise IllegalStateException("the iterator was closed; make another one from the store's handle")
        if self._ended:
            return None
        self._guard(self._broken)
        if self._next is None:
            self._advance()
        return self._next

    def _advance(self) -> None:
        try:
            self._next = next(self._entries)
        except StopIteration:
            self._ended = True
            self._release()
        except ViewClosed:
            # A merge that has raised is over and would look like the end of the store from now on.
            self._broken = True
            self._release()
            self._guard(self._broken)
            raise

    def close(self) -> None:
        """Give the store's resources back. May be called twice."""
        self._closed = True
        self._next = None
        self._release()

    def _release(self) -> None:
        for scan in self._scans:
            scan.close()

    def __enter__(self) -> MergedEntries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
