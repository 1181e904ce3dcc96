"""The local partitions of a store, judged before each read: what a query meets when one of them is not there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar, cast

from streams_runtime.errors import InvalidStateStorePartitionException
from streams_runtime.query.stores.merged_entries import MergedEntries
from streams_runtime.query.stores.position_bound import check_position
from streams_runtime.query.stores.store_target import StoreTarget
from streams_runtime.query.stores.verdicts import Found, Situation, check, named, settled, verdict
from streams_runtime.query.stores.views import EntryIterator, PartitionView, ViewClosed
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
    """The local partitions of a target's store: all of them, or exactly those that the target names.

    It holds on to each view that it has read, so a partition that moved away is an exception and never a
    shorter answer. Partitions that arrive later are read too. Usable from several threads.

    Every method, the constructor included, raises what `verdicts.check` says for the client's state and for
    the partitions that the method needs, and NotUpToBoundException where these do not contain the target's bound.
    """

    def __init__(self, target: StoreTarget) -> None:
        self._target = target
        self._held: dict[int, V] = {}
        self._readable()

    def _readable(self, key_partition: int | None = None) -> tuple[V, ...]:
        """The open views of all partitions of the target, or of the one that a key is in."""
        target, queryable, held = self._target, self._target.queryable, self._held
        before = queryable.state
        live = cast("Mapping[int, V]", target.views())  # `target_of` has compared the store's type
        expected = queryable.expected_partitions(target.store)
        named_ones = target.partitions
        if key_partition is not None:
            needed: Collection[int] = (key_partition,)
        else:
            needed = {*live, *held, *expected} if named_ones is None else named_ones
        situation, partitions = situation_of(needed, held, live, expected, target.stale)
        self._judge(settled(before, queryable.state), situation, partitions)
        if key_partition is not None and named_ones is not None and key_partition not in named_ones:
            raise InvalidStateStorePartitionException(
                f"store {target.store!r}: the key is in partition {key_partition}, and the handle was made for"
                f" {named(named_ones)} alone; ask a handle that has the key's partition"
            )
        found = {partition: held.get(partition) or live[partition] for partition in sorted(needed)}
        for view in found.values():
            check_position(target.store, view, target.bound)
        self._held = {**self._held, **found}
        return tuple(found.values())

    def _readable_for(self, key: bytes) -> V:
        """The open view of the partition that the key is in."""
        (view,) = self._readable(self._target.partition_of(key))
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
        stale = self._target.stale
        closed = tuple([view.partition for view in views if not is_readable(view, stale)])
        if broken and not closed:
            closed = tuple(view.partition for view in views)
        self._judge(self._target.queryable.state, Situation.CLOSED if closed else Situation.OPEN, closed)

    def _judge(self, state: ClientState, situation: Situation, partitions: tuple[int, ...]) -> None:
        # Called before each read, and each entry of a scan: only what is refused needs words.
        target = self._target
        if verdict(state, situation, target.stale) is not None:
            count = target.queryable.partition_count(target.store)
            check(state, Found(target.store, situation, partitions, count, target.queryable.url), target.stale)
