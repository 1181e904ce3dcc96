"""A streams client and its stores in memory, for tests of queries; every state of it can be set by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.measurements import Measurements
from streams_runtime.query.server.liveness import Stuck
from streams_runtime.query.server.query_server import QueryServer
from streams_runtime.query.stores.views import Entry, KnownInstance, Owner, StoreCodec, ViewClosed
from streams_runtime.state.serdes import key_serde, value_serde
from streams_runtime.states import ClientState
from streams_runtime.topology.nodes.source_and_sink_nodes import Format

KEYS = ("AA", "B6", "DL", "EV", "UA", "WN", "hello", "ü")
PARTITIONS = 3


class FakeView:
    """One partition. `lost` makes reads fail while `is_open` still says otherwise, as in a race."""

    def __init__(self, partition: int, entries: Mapping[bytes, bytes]) -> None:
        self.partition = partition
        self.entries = dict(entries)
        self.is_open = True
        self.is_active = True
        self.position: dict[TopicPartition, int] = {}
        self.lost = False
        self.scans: list[FakeScan] = []

    def get(self, key: bytes) -> bytes | None:
        self.check()
        return self.entries.get(key)

    def at_hand(self, key: bytes) -> tuple[bool, bytes | None]:
        return False, None

    def scan(self, start: bytes | None, end: bytes | None, *, reverse: bool = False) -> FakeScan:
        self.check()
        keys = [k for k in self.entries if (start is None or k >= start) and (end is None or k <= end)]
        return self._walk(sorted(keys, reverse=reverse))

    def prefix_scan(self, prefix: bytes) -> FakeScan:
        self.check()
        return self._walk(sorted(k for k in self.entries if k.startswith(prefix)))

    def approximate_num_entries(self) -> int:
        self.check()
        return len(self.entries)

    def check(self) -> None:
        if self.lost or not self.is_open:
            raise ViewClosed("closed")

    def _walk(self, keys: list[bytes]) -> FakeScan:
        scan = FakeScan(self, keys)
        self.scans.append(scan)
        return scan


class FakeScan:
    """An iterator that knows whether it was closed."""

    def __init__(self, view: FakeView, keys: list[bytes]) -> None:
        self._view = view
        self._keys = iter(keys)
        self.closed = False

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        assert not self.closed, "read after close"
        self._view.check()
        key = next(self._keys)
        return key, self._view.entries[key]

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeClient:
    """A Queryable with one store, `counts`, and a key format that can be chosen."""

    local: dict[int, FakeView]
    partitions: int = PARTITIONS
    state: ClientState = ClientState.RUNNING
    url: str = "http://here:1"
    key_format: str = "string"
    restoring: set[int] = field(default_factory=set)
    inputs: set[str] = field(default_factory=lambda: {"flights", "carriers"})
    known_owners: dict[int, Owner] = field(default_factory=dict)
    owners_error: Exception | None = None
    stuck: tuple[Stuck, ...] = ()
    spark_ready: bool = True
    is_analysed: bool = True
    known: list[KnownInstance] = field(default_factory=list)
    topology_document: dict[str, Any] = field(default_factory=dict)

    def instances(self) -> list[KnownInstance]:
        return self.known or [KnownInstance("flights-0", self.url, True)]

    def store_names(self) -> set[str]:
        return {"counts"}

    def store_type(self, _: str) -> str:
        return "key-value"

    def partition_count(self, _: str) -> int:
        return self.partitions

    def input_topics(self, _: str) -> set[str]:
        return self.inputs

    def views(self, _: str) -> dict[int, FakeView]:
        return dict(self.local)

    def active_view(self, store: str, partition: int) -> FakeView | None:
        return self.views(store).get(partition)

    def stale_views(self, _: str) -> dict[int, FakeView]:
        return dict(self.local)

    def expected_partitions(self, _: str) -> set[int]:
        return {*self.local, *self.restoring}

    def codec(self, _: str) -> StoreCodec:
        return StoreCodec(key_serde(Format(self.key_format, None)), value_serde(Format("json", None)).decode)

    def owners(self, _: str) -> dict[int, Owner]:
        if self.owners_error is not None:
            raise self.owners_error
        return self.known_owners

    def stuck_threads(self, turn_seconds: float | None = None) -> tuple[Stuck, ...]:
        return tuple(each for each in self.stuck if turn_seconds is None or each.seconds > turn_seconds)

    def measure(self) -> Measurements:
        return Measurements()

    def describe(self) -> dict[str, Any]:
        return {
            "application_id": "flights",
            "instance": "flights-0",
            "state": self.state.value,
            "paused": False,
            "spark_ready": self.spark_ready,
            "url": self.url,
            "pid": 7,
            "threads": [{"name": "t1", "state": "RUNNING"}, {"name": "t2", "state": "DEAD"}],
            "tasks": [{"id": "0_0", "state": "RUNNING", "thread": "t1", "partitions": ["flights-0"]}],
            "restoration": [
                {
                    "store": "counts",
                    "topic": "flights-counts-changelog",
                    "partition": 2,
                    "start": 0,
                    "position": 40,
                    "end": 100,
                    "restored": 40,
                    "remaining": 60,
                    "rate": 20.0,
                    "eta_seconds": 3.0,
                }
            ],
            "warm_up": None,
            "restoration_in_all": {"stores": 1, "remaining": 60, "rate": 20.0, "eta_seconds": 3.0},
            "snapshots": {
                "made": 4,
                "uploaded_bytes": 5000,
                "failures": 1,
                "longest_pause": 0.004,
                "fetched": 2,
                "downloaded_bytes": 6000,
                "received_bytes": 6500,
                "put_aside": 1,
                "stores": [
                    {"store": "counts", "partition": 2, "created": None, "offset": None, "size": 0, "age": 7.0},
                    {"store": "counts", "partition": 3, "created": 9.0, "offset": 5, "size": 50, "age": 70.0},
                ],
            },
            "standbys": [
                {
                    "id": "0_3",
                    "type": "standby",
                    "state": "RUNNING",
                    "stores": [{"store": "counts", "partition": 3, "position": 1, "end": 9, "lag": 8}],
                    "lag": 8,
                    "age": 0.5,
                }
            ],
            "rates": {"restore": 5.0, "update": 6.0, "restore_ratio": 0.5, "update_ratio": 0.25},
            "lag": [
                {"topic": "flights", "partition": 0, "position": 5, "committed": 5, "end": 12, "lag": 7},
                {
                    "topic": "flights",
                    "partition": 1,
                    "position": 5,
                    "committed": None,
                    "end": None,
                    "lag": None,
                },
            ],
            "counters": {
                "records_processed": 1000,
                "batches": 4,
                "records_dropped": 3,
                "late_records": 1,
                "deserialization_errors": 2,
                "processing_errors": 5,
                "production_errors": 6,
                "dead_letters": 1,
                "restored_records": 40,
                "updated_records": 9,
                "quarantined_stores": 1,
            },
            "peeks": [{"step": "seen", "metric": "cents", "records": 3, "sum": 4.5}],
            "error": None,
        }


def value_of(number: int) -> bytes:
    """The stored value of the `number`-th key."""
    return b'{"n":%d}' % number


def entries_of(partition: int, keys: tuple[str, ...] = KEYS, partitions: int = PARTITIONS) -> dict[bytes, bytes]:
    """The entries that belong into a partition: each key with its number among `keys` as value."""
    return {
        key.encode(): value_of(number)
        for number, key in enumerate(keys)
        if partition_for(key.encode(), partitions) == partition
    }


def client_with(*partitions: int) -> FakeClient:
    """A RUNNING client that has these partitions of `counts`, with their part of KEYS."""
    return FakeClient({partition: FakeView(partition, entries_of(partition)) for partition in partitions})


def key_in(partition: int) -> str:
    """A key of KEYS that lies in the partition."""
    return next(key for key in KEYS if partition_for(key.encode(), PARTITIONS) == partition)


class Pair:
    """Two instances on real sockets: the first has partitions 0 and 2, the second has partition 1."""

    def __init__(self) -> None:
        self.first = client_with()
        self.second = client_with()
        self._servers = [QueryServer(client, "127.0.0.1", 0, grace=0) for client in (self.first, self.second)]
        for client, server in zip((self.first, self.second), self._servers, strict=True):
            client.url = f"http://127.0.0.1:{server.start()}"

    def reset(self) -> None:
        """Both RUNNING, everything in its place."""
        for client, partitions in ((self.first, (0, 2)), (self.second, (1,))):
            client.local = {partition: FakeView(partition, entries_of(partition)) for partition in partitions}
            client.state = ClientState.RUNNING
            client.restoring = set()
            client.key_format = "string"
        self.tell_owners(first=(0, 2), second=(1,))

    def tell_owners(self, first: tuple[int, ...], second: tuple[int, ...]) -> None:
        """What both instances believe about who has what."""
        owners = {partition: Owner("flights-0", self.first.url) for partition in first}
        owners |= {partition: Owner("flights-1", self.second.url) for partition in second}
        self.first.known_owners = self.second.known_owners = owners

    def stop(self) -> None:
        """Stop both servers."""
        for server in self._servers:
            server.stop()
