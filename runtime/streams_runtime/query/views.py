"""What queries see of a running client and of its stores: the protocols that these implement."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from streams_runtime.errors import StreamsException
from streams_runtime.query.liveness import Stuck
from streams_runtime.states import ClientState

Entry = tuple[bytes, bytes]
"""One record of a store as it lies there: key bytes and value bytes."""


class ViewClosed(StreamsException):
    """A closed partition was read. Handles turn it into the exception that the client's state calls for."""


class StoreType(enum.StrEnum):
    """The kinds of store that can be queried; the value is the kind's name in a topology."""

    KEY_VALUE = "key-value"


class EntryIterator(Protocol):
    """Walks entries in key order (by bytes) and holds resources of the store until it is closed.

    `next()` raises ViewClosed once the partition is closed. `close()` may be called twice.
    """

    def __iter__(self) -> Iterator[Entry]: ...

    def __next__(self) -> Entry: ...

    def close(self) -> None: ...


class StoreView(Protocol):
    """One partition of a store, open on this instance. Every read of a closed one raises ViewClosed.

    A view is open while its partition is active and restored here, and never opens again once it is closed: a
    task that comes back hands out another view.
    """

    @property
    def partition(self) -> int: ...

    @property
    def is_open(self) -> bool: ...

    def get(self, key: bytes) -> bytes | None:
        """The value's bytes, or None where the store has no such key."""

    def scan(self, start: bytes | None, end: bytes | None, *, reverse: bool = False) -> EntryIterator:
        """Entries from `start` to `end`, both inclusive, None an open end; `reverse` walks from the end."""

    def prefix_scan(self, prefix: bytes) -> EntryIterator:
        """Entries whose key begins with `prefix`."""

    def approximate_num_entries(self) -> int:
        """About how many entries there are; cheap."""


class KeySerde(Protocol):
    """Turns keys into the bytes that lie in the store, and text (of a URL, of a command line) into keys."""

    def encode(self, value: object) -> bytes: ...

    def decode(self, data: bytes) -> object: ...

    def parse(self, text: str) -> object: ...


@dataclass(frozen=True, slots=True)
class StoreCodec:
    """How one store's bytes are read.

    `key` raises a ValueError for what can't be a key. `decode_value` gives the object that a user sees (of an
    aggregate: its finished columns) and raises a ValueError for bytes that it can't read.
    """

    key: KeySerde
    decode_value: Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Owner:
    """The instance that has a partition, and the URL at which its queries are answered."""

    instance: str
    url: str


class Queryable(Protocol):
    """A streams client as queries see it. Every method may be called from any thread, in every state.

    Methods that take a store's name are only called with a name that `store_names` holds.
    """

    @property
    def state(self) -> ClientState:
        """The client's state; must not block."""

    @property
    def url(self) -> str:
        """The URL that this instance advertises."""

    def store_names(self) -> Collection[str]:
        """Names of all stores of the topology, here or elsewhere."""

    def store_type(self, name: str) -> str:
        """The store's kind, a value of StoreType."""

    def partition_count(self, store: str) -> int:
        """How many partitions the store has over all instances."""

    def views(self, store: str) -> Mapping[int, StoreView]:
        """The local partitions that are active and restored; the mapping is the caller's to keep."""

    def expected_partitions(self, store: str) -> Collection[int]:
        """The partitions assigned to this instance, with those that are still being restored."""

    def codec(self, store: str) -> StoreCodec:
        """How the store's bytes are read."""

    def owners(self, store: str) -> Mapping[int, Owner]:
        """Who has each partition, as far as the group knows. May ask the broker; remembers it for a while."""

    def stuck_threads(self) -> Collection[Stuck]:
        """The threads that count as stuck; must not block."""

    def describe(self) -> Mapping[str, Any]:
        """What `/state` answers: client, threads, tasks, restoration, lag, counters, error."""
