"""What queries see of a running client and of its stores: the protocols that these implement."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.measurements import Measurements
from streams_runtime.query.server.liveness import Stuck
from streams_runtime.states import ClientState

Entry = tuple[bytes, bytes]
"""One record of a store as it lies there: key bytes and value bytes."""


class ViewClosed(StreamsException):
    """A closed partition was read. Handles turn it into the exception that the client's state calls for."""


class StoreType(enum.StrEnum):
    """The kinds of store that can be queried; the value is the kind's name in a topology."""

    KEY_VALUE = "key-value"
    WINDOW = "window"
    SESSION = "session"


class StoredVersion(NamedTuple):
    """What a key had for a while, as it lies in a store: valid from the one time until before the other (ms).

    `valid_to` None: it is the newest.
    """

    value: bytes
    valid_from: int
    valid_to: int | None


class EntryIterator(Protocol):
    """Walks entries in key order (by bytes) and holds resources of the store until it is closed.

    `next()` raises ViewClosed once the partition is closed. `close()` may be called twice.
    """

    def __iter__(self) -> Iterator[Entry]: ...

    def __next__(self) -> Entry: ...

    def close(self) -> None: ...


class PartitionView(Protocol):
    """One partition of a store of any kind, open on this instance. Every read of a closed one raises ViewClosed.

    A view never opens again once it is closed, nor becomes active again: a task that comes back hands out another.
    """

    @property
    def partition(self) -> int: ...

    @property
    def is_open(self) -> bool:
        """Whether it can be read at all."""

    @property
    def is_active(self) -> bool:
        """Whether its task has the partition and has restored it; others are stale: standbys, and those restoring."""

    @property
    def position(self) -> Mapping[TopicPartition, int]:
        """Of each input of its task the offset that comes next: it contains all before. Empty: that is not known."""


class StoreView(PartitionView, Protocol):
    """One partition of a key-value store."""

    def get(self, key: bytes) -> bytes | None:
        """The value's bytes, or None where the store has no such key."""

    def at_hand(self, key: bytes) -> tuple[bool, bytes | None]:
        """Whether `get` is known without waiting for a disk, and then what it gives."""

    def as_of(self, key: bytes, time: int) -> StoredVersion | None:
        """What the key had at `time` (ms), or None. Raises StoreTypeMismatch: the store keeps no history."""

    def scan(self, start: bytes | None, end: bytes | None, *, reverse: bool = False) -> EntryIterator:
        """Entries from `start` to `end`, both inclusive, None an open end; `reverse` walks from the end."""

    def prefix_scan(self, prefix: bytes) -> EntryIterator:
        """Entries whose key begins with `prefix`."""

    def approximate_num_entries(self) -> int:
        """About how many entries there are; cheap."""


class SegmentedView(PartitionView, Protocol):
    """One partition of a window or session store. Entries have the changelog's keys (state.window_keys)."""

    def get(self, key: bytes) -> bytes | None:
        """The value's bytes of one key of the changelog, or None where there is none, or no more."""

    def fetch(
        self, from_key: bytes | None, to_key: bytes | None, earliest: int, latest: int, *, reverse: bool = False
    ) -> EntryIterator:
        """Entries between two keys of records and two times in ms, all inclusive, None an open end.

        Windows that start between the times; sessions that end at `earliest` or later and start by `latest`.
        """


AnyView = StoreView | SegmentedView


class KeySerde(Protocol):
    """Turns keys into the bytes that lie in the store, and text (of a URL, of a command line) into keys."""

    def encode(self, value: object) -> bytes: ...

    def decode(self, data: bytes) -> object: ...

    def parse(self, text: str) -> object: ...


@dataclass(frozen=True, slots=True)
class StoreCodec:
    """How one store's bytes are read.

    `key` raises a ValueError for what can't be a key. `decode_value` gives the object that a user sees (of an
    aggregate: its finished columns) and raises a ValueError for bytes that it can't read. `window_end` gives the
    end of a window store's window by its start, in ms, and is None for the other kinds. `partition_by`: the expression
    by which keys have their partitions, where that is not their hash.
    """

    key: KeySerde
    decode_value: Callable[[bytes], object]
    window_end: Callable[[int], int] | None = None
    partition_by: str | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """The instance that has a partition, and the URL at which its queries are answered."""

    instance: str
    url: str


@dataclass(frozen=True, slots=True)
class KnownInstance:
    """An instance of the application. `url` None: nobody vouches for an address; `in_group`: Kafka counts it in.

    `last_word` is the termination message of one that has ended, where it is known: `state`, `class`, `message`.
    """

    instance: str
    url: str | None
    in_group: bool
    last_word: Mapping[str, str | None] | None = None


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

    def input_topics(self, store: str) -> Collection[str]:
        """The topics whose records the store's tasks read; none of a global table, whose position nobody knows."""

    def views(self, store: str) -> Mapping[int, AnyView]:
        """The local partitions that are active and restored; the mapping is the caller's to keep."""

    def active_view(self, store: str, partition: int) -> AnyView | None:
        """One of `views`, or None where it is not among them; costs the same however many there are."""

    def stale_views(self, store: str) -> Mapping[int, AnyView]:
        """All that lie open here: those of `views`, and those that are stale, being restored or standbys."""

    def expected_partitions(self, store: str) -> Collection[int]:
        """The partitions assigned to this instance, with those that are still being restored."""

    def codec(self, store: str) -> StoreCodec:
        """How the store's bytes are read."""

    def owners(self, store: str) -> Mapping[int, Owner]:
        """Who has each partition, as far as the group knows. May ask the broker; remembers it for a while."""

    def stuck_threads(self, turn_seconds: float | None = None) -> Collection[Stuck]:
        """The threads that count as stuck (`liveness.stuck_threads`); must not block."""

    def describe(self) -> Mapping[str, Any]:
        """What `/state` answers: client, threads, tasks, restoration, lag, counters, error."""

    def measure(self) -> Measurements:
        """What was measured, for `/metrics`."""


class Inspectable(Queryable, Protocol):
    """A streams client as its HTTP server sees it: what it can be asked of the application as a whole too."""

    @property
    def spark_ready(self) -> bool:
        """Whether Spark has compiled the topology; must not block."""

    @property
    def is_analysed(self) -> bool:
        """Whether the topology is analysed, now or at an earlier start, so that stores can be read; must not block."""

    def instances(self) -> Sequence[KnownInstance]:
        """All instances of the application, this one included. May ask the broker; remembers it for a while."""

    @property
    def topology_document(self) -> Mapping[str, Any]:
        """What `/topology` answers: steps, stores and topics, and where the page draws them."""
