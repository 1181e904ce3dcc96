"""A stage for queries: one client with real stores of every kind, whose every state can be set by hand.

Three stores, `counts` (key-value), `per-minute` (window) and `visits` (session), in three partitions. `QueryStage` is a
Queryable (query.stores.views): hand it to `open_store`, to a QueryServer, or to an application of endpoints.
"""

from __future__ import annotations

import enum
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from state_kit import memory_folder

from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.metrics.measurements import Measurements
from streams_runtime.query.server.liveness import Stuck
from streams_runtime.query.stores.local_partitions import view_of
from streams_runtime.query.stores.views import AnyView, KnownInstance, Owner, StoreCodec
from streams_runtime.query.wire.windowed_keys import Window, Windowed
from streams_runtime.state.open_store import AnyStore, open_store
from streams_runtime.state.serdes import key_serde, value_serde
from streams_runtime.state.store import Updates
from streams_runtime.state.window_keys import session_key, window_key
from streams_runtime.states import ClientState
from streams_runtime.topology.nodes.source_and_sink_nodes import Format
from streams_runtime.topology.store_specs import StoreSpec, Windowing

PARTITIONS = 3
KEYS = ("AA", "B6", "DL", "EV", "UA", "WN", "hello", "ü")
KEY_VALUE, WINDOW, SESSION = STORES = ("counts", "per-minute", "visits")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
T0 = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""When the first windows and the first sessions of every key begin."""
SIZE = timedelta(minutes=1)
WINDOW_STARTS = (T0, T0 + SIZE, T0 + 3 * SIZE)
SESSIONS = ((T0, T0 + timedelta(seconds=10)), (T0 + timedelta(seconds=60), T0 + timedelta(seconds=90)))
_HOUR = 60 * 60 * 1000

SPECS = {
    KEY_VALUE: StoreSpec(KEY_VALUE, "key-value", "app-counts-changelog", False, "counts"),
    WINDOW: StoreSpec(
        WINDOW,
        "window",
        "app-per-minute-changelog",
        False,
        "per-minute",
        Windowing(_HOUR, SIZE // timedelta(milliseconds=1)),
    ),
    SESSION: StoreSpec(SESSION, "session", "app-visits-changelog", False, "visits", Windowing(_HOUR)),
}


class Place(enum.Enum):
    """Where a partition, with all of its stores, can be put."""

    ACTIVE = "active and restored here"
    CLOSED = "closed a moment ago, and still looked at"
    REOPENED = "closed, and opened again by another task"
    RESTORING = "assigned here, open, not yet restored"
    ASSIGNED = "assigned here, not yet open"
    STANDBY = "a standby here, active elsewhere"
    ELSEWHERE = "not here"


_OPEN = {Place.ACTIVE, Place.REOPENED, Place.RESTORING, Place.STANDBY}
_ACTIVE = {Place.ACTIVE, Place.REOPENED, Place.CLOSED}
_ASSIGNED = {Place.ACTIVE, Place.REOPENED, Place.CLOSED, Place.RESTORING, Place.ASSIGNED}


def value_of(number: int, part: int = 0) -> object:
    """What the `number`-th key has; of windows and sessions the `part`-th."""
    return {"n": 10 * number + part}


def ms(at: datetime) -> int:
    """The moment as the stores write it."""
    return (at - EPOCH) // timedelta(milliseconds=1)


def window(start: datetime) -> Window:
    """The window of `per-minute` that starts then."""
    return Window(start, start + SIZE)


def windows() -> list[tuple[Windowed, object]]:
    """All that `per-minute` holds, in order."""
    return [
        (Windowed(key, window(start)), value_of(number, part))
        for number, key in _in_order()
        for part, start in enumerate(WINDOW_STARTS)
    ]


def sessions() -> list[tuple[Windowed, object]]:
    """All that `visits` holds, in order."""
    return [
        (Windowed(key, Window(*session)), value_of(number, part))
        for number, key in _in_order()
        for part, session in enumerate(SESSIONS)
    ]


def counts() -> list[tuple[str, object]]:
    """All that `counts` holds, in order."""
    return [(key, value_of(number)) for number, key in _in_order()]


def key_in(partition: int) -> str:
    """A key that lies in the partition."""
    return next(key for key in KEYS if partition_for(key.encode(), PARTITIONS) == partition)


def _in_order() -> list[tuple[int, str]]:
    return sorted(enumerate(KEYS), key=lambda pair: pair[1].encode())


class _Task:
    """One partition's stores, as a task has them; it never opens again once it is closed."""

    def __init__(self, folder: Path, partition: int, active: bool, specs: Mapping[str, StoreSpec]) -> None:
        self.active = active
        self.stores: dict[str, AnyStore] = {}
        for name, spec in specs.items():
            self.stores[name] = store = open_store(spec, partition, folder / f"{name}-{partition}")
            if store.is_empty():
                store.write(_contents(name, partition), 1)

    def close(self) -> None:
        for store in self.stores.values():
            store.close()


def _contents(name: str, partition: int) -> Updates:
    codec = value_serde(Format("json"))
    keys, values = [], []
    for number, key in enumerate(KEYS):
        data = key.encode()
        if partition_for(data, PARTITIONS) != partition:
            continue
        if name == KEY_VALUE:
            parts = [data]
        elif name == WINDOW:
            parts = [window_key(data, ms(start)) for start in WINDOW_STARTS]
        else:
            parts = [session_key(data, ms(start), ms(end)) for start, end in SESSIONS]
        keys += parts
        values += [codec.encode(value_of(number, part)) for part in range(len(parts))]
    return Updates(keys, values, [ms(T0)] * len(keys))


class QueryStage:
    """A Queryable: `state` is set by assignment, partitions are put into their places by `put`.

    With `history` (ms) the key-value store keeps what each key had.
    """

    def __init__(self, folder: Path, history: int | None = None) -> None:
        self._specs = {**SPECS, KEY_VALUE: replace(SPECS[KEY_VALUE], history=history)}
        self.state = ClientState.RUNNING
        self.url = "http://here:1"
        self.known_owners: dict[int, Owner] = {}
        self.stuck: tuple[Stuck, ...] = ()
        self._folder = folder
        self._tasks: dict[int, _Task] = {}
        self._places: dict[int, Place] = dict.fromkeys(range(PARTITIONS), Place.ELSEWHERE)
        self.reset()

    def reset(self) -> None:
        """RUNNING, with all partitions active here."""
        self.state = ClientState.RUNNING
        self.known_owners = {}
        for partition in range(PARTITIONS):
            if self._places[partition] is not Place.ACTIVE:
                self.put(partition, Place.ACTIVE)

    def put(self, partition: int, place: Place) -> None:
        """Bring one partition of all stores there, as a client would: what has to be closed is closed first."""
        if place is Place.CLOSED and self._places[partition] not in _OPEN:
            self.put(partition, Place.ACTIVE)
        task = self._tasks.get(partition)
        keep = task is not None and place in _OPEN - {Place.REOPENED} and self._places[partition] in _OPEN
        if task is not None and not keep:
            task.close()
            if place is not Place.CLOSED:
                del self._tasks[partition]
        if place in _OPEN and not keep:
            self._tasks[partition] = _Task(self._folder, partition, place in _ACTIVE, self._specs)
        elif keep and task is not None:
            task.active = place in _ACTIVE
        self._places[partition] = place

    def put_all(self, place: Place) -> None:
        """Bring every partition there."""
        for partition in range(PARTITIONS):
            self.put(partition, place)

    def store(self, name: str, partition: int) -> AnyStore:
        """The open store itself."""
        return self._tasks[partition].stores[name]

    def forget(self, partition: int) -> None:
        """Delete the stores of a partition that is elsewhere: it will have its first contents again."""
        for name in STORES:
            shutil.rmtree(self._folder / f"{name}-{partition}")

    def close(self) -> None:
        """Close whatever is open."""
        for task in self._tasks.values():
            task.close()

    # What queries see (query.stores.views.Queryable).

    def store_names(self) -> Collection[str]:
        return STORES

    def store_type(self, name: str) -> str:
        return SPECS[name].kind

    def partition_count(self, _: str) -> int:
        return PARTITIONS

    def views(self, store: str) -> Mapping[int, AnyView]:
        tasks = {partition: task for partition, task in self._tasks.items() if task.active}
        return {partition: _view(task, store) for partition, task in tasks.items()}

    def active_view(self, store: str, partition: int) -> AnyView | None:
        return self.views(store).get(partition)

    def stale_views(self, store: str) -> Mapping[int, AnyView]:
        return {partition: _view(task, store) for partition, task in self._tasks.items()}

    def expected_partitions(self, _: str) -> Collection[int]:
        return {partition for partition, place in self._places.items() if place in _ASSIGNED}

    def codec(self, store: str) -> StoreCodec:
        size = SIZE // timedelta(milliseconds=1)
        end = size.__add__ if store == WINDOW else None
        return StoreCodec(key_serde(Format("string")), value_serde(Format("json")).decode, end)

    def owners(self, _: str) -> Mapping[int, Owner]:
        return self.known_owners

    def instances(self) -> list[KnownInstance]:
        known = {owner.instance: KnownInstance(owner.instance, owner.url, True) for owner in self.known_owners.values()}
        return list(({"app-0": KnownInstance("app-0", self.url, True)} | known).values())

    @property
    def topology_document(self) -> Mapping[str, Any]:
        return {"subtopologies": []}

    @property
    def spark_ready(self) -> bool:
        return True

    @property
    def is_analysed(self) -> bool:
        return True

    def stuck_threads(self, turn_seconds: float | None = None) -> Collection[Stuck]:
        del turn_seconds
        return self.stuck

    def measure(self) -> Measurements:
        return Measurements()

    def describe(self) -> Mapping[str, Any]:
        return {
            "application_id": "app",
            "instance": "app-0",
            "state": str(self.state),
            "spark_ready": self.spark_ready,
            "url": self.url,
            "pid": 7,
            "transitions": [],
            "threads": [{"name": "t1", "state": "RUNNING"}],
            "tasks": [],
            "standbys": [],
            "warm_up": None,
            "restoration": [],
            "snapshots": None,
            "lag": [],
            "counters": {},
            "peeks": [],
            "error": None,
        }


def _view(task: _Task, store: str) -> AnyView:
    return view_of(task.stores[store], lambda: task.active)


@contextmanager
def query_stage(history: int | None = None) -> Iterator[QueryStage]:
    """A stage in a folder of its own, RUNNING with all partitions; closed at the end."""
    with memory_folder() as folder:
        stage = QueryStage(folder, history)
        try:
            yield stage
        finally:
            stage.close()
