"""The store and the partitions that a query is about. Every query finds them here, whichever route it comes by."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from streams_runtime.errors import StoreTypeMismatch, UnknownStateStoreException
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.query.stores.position_bound import NO_BOUND, PositionBound, check_bound
from streams_runtime.query.stores.verdicts import Found, Situation, check
from streams_runtime.query.stores.views import AnyView, Owner, Queryable, StoreCodec
from streams_runtime.query.wire.problems import InvalidQueryException
from streams_runtime.states import ClientState


@dataclass(frozen=True, slots=True)
class StoreTarget:
    """A store of `queryable`, and those of its partitions on this instance that a query reads. `target_of` makes it.

    `partitions` None: every one that is here. `stale`: standbys and stores that are being restored are read too, also
    while the client is REBALANCING. `key_partition` is the partition of the one key that the query is about, if it is
    about one. `bound`: what the partitions that are read have to contain.
    """

    queryable: Queryable
    store: str
    partitions: frozenset[int] | None = None
    stale: bool = False
    key_partition: int | None = None
    bound: PositionBound = field(default_factory=dict)

    @property
    def codec(self) -> StoreCodec:
        """How the store's bytes are read. Raises StreamsRebalancingException while that is not known; retry."""
        return self.queryable.codec(self.store)

    def parse_key(self, name: str, text: str) -> tuple[object, bytes]:
        """The key that the parameter `name` gives as `text`, and its bytes.

        Raises:
            InvalidQueryException: the text is no key of the store's key format.
            StreamsRebalancingException: the format is not known yet; retry.
        """
        return parse_key(self.codec, self.store, name, text)

    def at_key(self, key: bytes) -> StoreTarget:
        """The target of one key: its partition, where the query names none.

        Raises StreamsRebalancingException while the number of partitions is not known; retry.
        """
        own = self.partition_of(key)
        partitions = frozenset((own,)) if self.partitions is None else self.partitions
        return replace(self, partitions=partitions, key_partition=own)

    def partition_of(self, key: bytes) -> int:
        """The partition that the bytes of a key are in, or the one that the query names where no key says it.

        Raises as `at_key` does, and InvalidQueryException where neither is there.
        """
        if self.key_partition is not None:
            return self.key_partition
        count = self.queryable.partition_count(self.store)
        if count > 1 and (expression := self.codec.partition_by) is not None:
            if self.partitions is not None and len(self.partitions) == 1:
                return next(iter(self.partitions))
            raise InvalidQueryException(
                f"store {self.store!r} has what records put into the partitions that partitionBy gives ({expression}),"
                " so that a key does not say where it is; ask for the range from the key to itself, which looks into"
                " all partitions, or take a handle of one partition"
            )
        return partition_for(key, count)

    def views(self) -> Mapping[int, AnyView]:
        """The local partitions that the query may read: the stale ones only where it wants them."""
        return self.queryable.stale_views(self.store) if self.stale else self.queryable.views(self.store)


def target_of(
    queryable: Queryable,
    store: str,
    type: str,
    partitions: Collection[int] | None = None,
    stale: bool = False,
    bound: PositionBound = NO_BOUND,
) -> StoreTarget:
    """The target of a query of a store of this `type`, a StoreType or its value.

    The client's state counts before the name, as in Kafka Streams: a client that has not started, or that is closing,
    says so whatever store the query names.

    Raises:
        StreamsNotStartedException: the client is CREATED; retry once it is RUNNING.
        StateStoreNotAvailableException: the client is closing, closed or in ERROR; do not retry here.
        UnknownStateStoreException: the topology has no such store; fix the name.
        StoreTypeMismatch: the store is of another type; query it as that one.
        InvalidQueryException, StreamsRebalancingException: as `check_bound` says.
    """
    state = queryable.state
    if state is not ClientState.REBALANCING:
        check(state, Found(store, Situation.OPEN, (), 0, queryable.url))
    check_name(queryable, store)
    store_type = queryable.store_type(store)
    if store_type != type:
        raise StoreTypeMismatch(f"store {store!r} has type {str(store_type)!r}, not {str(type)!r}; ask for the former")
    check_bound(queryable, store, bound, stale)
    return StoreTarget(queryable, store, None if partitions is None else frozenset(partitions), stale, bound=bound)


def owners_of(queryable: Queryable, store: str) -> Mapping[int, Owner]:
    """Who has each partition of a store, as far as the group knows, in every state of the client. May ask the brokers.

    Raises UnknownStateStoreException unless the topology has a store of this name.
    """
    check_name(queryable, store)
    return queryable.owners(store)


def check_name(queryable: Queryable, name: str) -> None:
    """Raise UnknownStateStoreException unless the topology has a store of this name."""
    names = queryable.store_names()
    if name not in names:
        known = ", ".join(sorted(names)) or "none"
        raise UnknownStateStoreException(f"the topology has no store {name!r}, only: {known}; fix the name")


def parse_key(codec: StoreCodec, store: str, name: str, text: str) -> tuple[object, bytes]:
    """As StoreTarget.parse_key, with the store's codec at hand."""
    try:
        key = codec.key.parse(text)
        return key, codec.key.encode(key)
    except ValueError as error:
        raise InvalidQueryException(f"{name}: {text!r} can't be a key of store {store!r}: {error}") from error
