"""The local partitions of a store, judged before each read: what a query meets when one of them is not there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar, cast

from streams_runtime.errors import InvalidStateStorePartitionException
from streams_runtime.kafka.partitioner import partition_for
from streams_runtime.query.merged import MergedEntries
from streams_runtime.query.verdicts import Found, Situation, check, named, settled, verdict
from streams_runtime.query.views import EntryIterator, PartitionView, Queryable, ViewClosed
from streams_runtime.states import ClientState

T = TypeVar("T")
V = TypeVar("V", bound=PartitionView)


def is_readable(view: PartitionView, stale: bool) -> bool:
    """Whether a handle may read the view; one that takes stale contents too reads whatever is open."""
    return view.is_open and (stale or view.is_active)


def situation_of(
    needed: Collection[int],
    held: Mapping[int, PartitionView],
    live: Mapping[int, PartitionView],
    expected: Collection[int],
    stale: bool = False,
) -> tuple[Situation, tuple[int, ...]]:
    """What became of the `needed` partitions, and which of them the verdict is about.

    `held` are the views that a handle has read before: a closed one stays closed for it, even where the
    partition has come back as another view. Nothing needed and nothing here is ELSEWHERE.
    """
    present = {**live, **held}
    closed = [p for p in needed if p in present and not is_readable(present[p], stale)]
    missing = [p for p in needed if p not in present]
    elsewhere = [p for p in missing if p not in expected]
    if closed:
        return Situation.CLOSED, tuple(closed)
    if elsewhere or not needed:
        return Situation.ELSEWHERE, tuple(elsewhere)
    if missing:
        return Situation.RESTORING, tuple(missing)
    return Situation.OPEN, ()


class LocalPartitions(Generic[V]):
    """The local partitions of `store`: all of them, or exactly those of `only`.

    It holds on to each view that it has read, so a partition that moved away is an exception and never a
    shorter answer. Partitions that arrive later are read too. Usable from several threads.

    Every method, the constructor included, raises what `verdicts.check` says for the client's state and for
    the partitions that the method needs. `stale`: standbys and stores that are being restored are read too,
    also while the client is REBALANCING.
    """

    def __init__(
        self, queryable: Queryable, store: str, only: Collection[int] | None = None, stale: bool = False
    ) -> None:
        self._queryable = queryable
        self._store = store
        self._only = None if only is None else frozenset(only)
        self._stale = stale
        self._held: dict[int, V] = {}
        self._readable()

    def _readable(self, key_partition: int | None = None) -> tuple[V, ...]:
        """The open views of all partitions that are asked for, or of the one that a key is in."""
        queryable, store, held = self._queryable, self._store, self._held
        before = queryable.state
        views = queryable.stale_views(store) if self._stale else queryable.views(store)
        live = cast("Mapping[int, V]", views)  # the store's type was compared when it was looked up
        expected = queryable.expected_partitions(store)
        if key_partition is not None:
            needed: Collection[int] = (key_partition,)
        else:
            needed = {*live, *held, *expected} if self._only is None else self._only
        situation, partitions = situation_of(needed, held, live, expected, self._stale)
        self._judge(settled(before, queryable.state), situation, partitions)
        if key_partition is not None and self._only is not None and key_partition not in self._only:
            raise InvalidStateStorePartitionException(
                f"store {store!r}: the key is in partition {key_partition}, and the handle was made for"
                f" {named(self._only)} alone; ask a handle that has the key's partition"
            )
        found = {partition: held.get(partition) or live[partition] for partition in sorted(needed)}
        self._held = {**self._held, **found}
        return tuple(found.values())

    def _readable_for(self, key: bytes) -> V:
        """The open view of the partition that the key is in."""
        partition = partition_for(key, self._queryable.partition_count(self._store))
        (view,) = self._readable(partition)
        return view

    def _merged(self, views: tuple[V, ...], open_scan: Callable[[V], EntryIterator], reverse: bool) -> MergedEntries:
        scans: list[EntryIterator] = []
        try:
            for view in views:
                self._reading((view,), lambda view=view: scans.append(open_scan(view)))  # type: ignore[misc]
        except BaseException:
            for scan in scans:
                scan.close()
            raise
        return MergedEntries(scans, reverse, lambda broken: self._guard(views, broken))

    def _reading(self, views: tuple[V, ...], read: Callable[[], T]) -> T:
        """Do `read`; a partition that closes under it is judged by the client's state."""
        try:
            return read()
        except ViewClosed:
            self._guard(views, broken=True)
            raise

    def _guard(self, views: tuple[V, ...], broken: bool) -> None:
        """Raise unless `views` are readable and the client answers; `broken` says that a read has failed."""
        stale = self._stale
        closed = tuple([view.partition for view in views if not is_readable(view, stale)])
        if broken and not closed:
            closed = tuple(view.partition for view in views)
        self._judge(self._queryable.state, Situation.CLOSED if closed else Situation.OPEN, closed)

    def _judge(self, state: ClientState, situation: Situation, partitions: tuple[int, ...]) -> None:
        # Asked before each read, and each entry of a scan: only what is refused needs words.
        if verdict(state, situation, self._stale) is not None:
            count = self._queryable.partition_count(self._store)
            check(state, Found(self._store, situation, partitions, count, self._queryable.url), self._stale)
