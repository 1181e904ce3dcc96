"""The stores of the oracle's application `stores` as this project has them: planned, opened, restored, and read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from oracle_inputs import MINUTE
from oracle_jvm import Key

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters, Windowed, open_store
from streams_runtime.query.stores.local_partitions import view_of
from streams_runtime.query.stores.views import AnyView, StoreCodec
from streams_runtime.restore.changelog_reader import StoreChangelogReader
from streams_runtime.restore.restore_listener import NullListener
from streams_runtime.restore.restorer import StateRestorer
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.open_store import open_store as open_partition
from streams_runtime.state.serdes import key_serde, value_serde
from streams_runtime.state.store import KeyValueStore, unstamp
from streams_runtime.state.window_keys import LATEST, split_window_key
from streams_runtime.state.window_store import SegmentedStore
from streams_runtime.states import ClientState
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, SourceNode
from streams_runtime.topology.plan import SubTopology, TaskId, Topology
from streams_runtime.topology.store_specs import StoreSpec, Windowing

PARTITIONS = 3
FORMATS = {
    "counts": ("string", "long"),
    "latest": ("long", "string"),
    "tumbling": ("string", "long"),
    "hopping": ("long", "json"),
    "sessions": ("string", "json"),
}
"""Formats of key and value by store."""
_WINDOWING = {
    "tumbling": Windowing(60 * MINUTE, MINUTE),
    "hopping": Windowing(40 * MINUTE, 5 * MINUTE),
    "sessions": Windowing(60 * MINUTE),
}

Stores = Mapping[str, Mapping[int, AnyStore]]
"""Open partitions by store and number."""


def planned(application_id: str) -> Topology:
    """The application as a plan: its sources, and its stores with their changelogs."""
    subs = [("events", ("string", "long"), ("counts", "tumbling", "sessions"))]
    subs.append(("readings", ("long", "string"), ("latest", "hopping")))
    return Topology(
        application_id,
        tuple(
            SubTopology(
                number,
                (SourceNode(name, f"{application_id}-{name}", Format(key), Format(value), None, name),),
                (f"{application_id}-{name}",),
                (),
                (),
                tuple(_spec(application_id, store, name) for store in stores),
            )
            for number, (name, (key, value), stores) in enumerate(subs)
        ),
    )


def _spec(application_id: str, store: str, node: str) -> StoreSpec:
    windowing = _WINDOWING.get(store)
    kind = "key-value" if windowing is None else "session" if windowing.size is None else "window"
    return StoreSpec(store, kind, f"{application_id}-{store}-changelog", False, node, windowing)


@contextmanager
def opened(topology: Topology, folder: Path) -> Iterator[Stores]:
    """All partitions of all stores, in folders below `folder`; closed at the end."""
    with ExitStack() as closing:
        stores: dict[str, dict[int, AnyStore]] = {}
        for spec in topology.stores:
            for number in range(PARTITIONS):
                place = folder / f"{spec.name}-{number}"
                stores.setdefault(spec.name, {})[number] = store = open_partition(spec, number, place)
                closing.callback(store.close)
        yield stores


class _Task:
    """The restoring task of one partition of a store."""

    id = TaskId(0, 0)

    def __init__(self, store: AnyStore) -> None:
        self._store = store

    def reinitialize_state_stores_for_partitions(self, partitions: Collection[TopicPartition]) -> None:
        self._store.wipe()


def restore(bootstrap: str, application_id: str, stores: Stores) -> None:
    """Bring the stores to the ends of their changelogs, as a client does that is exactly once."""
    properties = {"bootstrap.servers": bootstrap}
    admin = Admin(properties)
    consumer = ChangelogConsumer({**properties, "isolation.level": "read_committed"}, "oracle-restore")
    reader = StoreChangelogReader(consumer, admin, application_id, NullListener(), exactly_once=True)
    tasks = {}
    for partitions in stores.values():
        for number, store in partitions.items():
            tasks[store.changelog] = _Task(store)
            reader.register(StateRestorer(TaskId(0, number), store))
    left = set(tasks)
    for _ in range(600):
        left -= reader.restore(tasks)
        if not left:
            break
    reader.clear()
    consumer.close()
    admin.close()
    assert not left, f"not restored: {left}"


class Inspection:
    """These stores as queries see those of a running client (query.stores.views.Queryable)."""

    state = ClientState.RUNNING
    url = "http://oracle:1"

    def __init__(self, topology: Topology, stores: Stores) -> None:
        self._topology = topology
        self._views = {name: {n: view_of(each) for n, each in found.items()} for name, found in stores.items()}

    def store_names(self) -> Collection[str]:
        return list(self._views)

    def store_type(self, name: str) -> str:
        return self._topology.store(name)[1].kind

    def partition_count(self, store: str) -> int:
        return len(self._views[store])

    def views(self, store: str) -> Mapping[int, AnyView]:
        return self._views[store]

    stale_views = views

    def active_view(self, store: str, partition: int) -> AnyView | None:
        return self._views[store].get(partition)

    def expected_partitions(self, store: str) -> Collection[int]:
        return list(self._views[store])

    def codec(self, store: str) -> StoreCodec:
        key, value = FORMATS[store]
        windowing = self._topology.store(store)[1].windowing
        size = None if windowing is None else windowing.size
        end = None if size is None else size.__add__
        return StoreCodec(key_serde(Format(key)), value_serde(Format(value)).decode, end)


def contents(topology: Topology, stores: Stores, name: str) -> dict[Key, Any]:
    """All that a store shows through its handle, where every record is also found by its own key."""
    inspection: Any = Inspection(topology, stores)
    handle: Any = open_store(inspection, StoreQueryParameters(name, inspection.store_type(name)))
    found: dict[Key, Any] = {}
    for key, value in handle.fetch(None, None) if name == "sessions" else handle.all():
        shown = (key.key, _ms(key.window.start), _ms(key.window.end)) if isinstance(key, Windowed) else (key,)
        assert shown not in found
        found[shown] = value
        if not isinstance(key, Windowed):
            alone = handle.get(key)
        elif name == "sessions":
            alone = handle.fetch_session(key.key, *key.window)
        else:
            alone = handle.fetch(key.key, key.window.start)
        assert alone == value
    return found


def times(topology: Topology, stores: Stores, name: str) -> dict[Key, int]:
    """The timestamps (ms) that lie beside the values of a key-value or window store, of those that are shown."""
    decode = key_serde(Format(FORMATS[name][0])).decode
    windowing = topology.store(name)[1].windowing
    found: dict[Key, int] = {}
    for store in stores[name].values():
        if isinstance(store, SegmentedStore):
            assert windowing is not None
            assert windowing.size is not None
            for data, _ in store.fetch(None, None, 0, LATEST):
                key, start, _ = split_window_key(data)
                found[decode(key), start, start + windowing.size] = _stamp_of(store, data)
        else:
            assert isinstance(store, KeyValueStore)
            for data, _ in store.scan(None, None):
                found[(decode(data),)] = _stamp_of(store, data)
    return found


def _stamp_of(store: KeyValueStore | SegmentedStore, key: bytes) -> int:
    (stored,) = store.get_stored([key])
    assert stored is not None
    return unstamp(stored)[0]


def _ms(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
