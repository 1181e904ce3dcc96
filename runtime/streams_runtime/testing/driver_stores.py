"""A driver's stores as queries see them: those of a client that runs, and has every partition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from streams_runtime.metrics.measurements import Measurements
from streams_runtime.pipeline.compile import Compiler
from streams_runtime.query.server.liveness import Stuck
from streams_runtime.query.stores.local_partitions import view_of
from streams_runtime.query.stores.views import AnyView, Owner, StoreCodec
from streams_runtime.states import ClientState
from streams_runtime.store_codecs import codec_of
from streams_runtime.testing.topology_runner import TopologyRunner


class DriverStores:
    """The driver's side of the query layer (query.stores.views.Queryable)."""

    url = "the test driver"

    def __init__(self, machine: TopologyRunner, compiler: Compiler) -> None:
        self._machine = machine
        self._topology = machine.topology
        self._compiler = compiler
        self.state = ClientState.RUNNING
        """The driver sets it when it closes."""

    def store_names(self) -> Collection[str]:
        """Names of the stores that queries see."""
        return [store.name for store in self._topology.stores if store.is_queryable]

    def store_type(self, name: str) -> str:
        """The store's kind."""
        return self._topology.store(name)[1].kind

    def partition_count(self, store: str) -> int:
        """As many as the sub-topology has tasks; one of a global store."""
        if self._topology.store(store)[1].global_:
            return 1
        return len(self._machine.tasks[self._topology.store(store)[0].id])

    def input_topics(self, store: str) -> Collection[str]:
        """None: all that was piped in is in the stores, and nobody has to wait for it."""
        del store
        return ()

    def views(self, store: str) -> Mapping[int, AnyView]:
        """All partitions."""
        sub, spec = self._topology.store(store)
        if spec.global_:
            return {0: view_of(self._machine.global_stores[spec.node])}
        tasks = self._machine.tasks[sub.id]
        return {partition: view_of(task.stores[store]) for partition, task in tasks.items()}

    def active_view(self, store: str, partition: int) -> AnyView | None:
        """The partition, if there is such a one."""
        return self.views(store).get(partition)

    def stale_views(self, store: str) -> Mapping[int, AnyView]:
        """The same: nothing is restored here."""
        return self.views(store)

    def expected_partitions(self, store: str) -> Collection[int]:
        """All partitions."""
        return range(self.partition_count(store))

    def codec(self, store: str) -> StoreCodec:
        """How the store's bytes are read."""
        return codec_of(self._topology, store, lambda: self._compiler)

    def owners(self, store: str) -> Mapping[int, Owner]:
        """Nobody else has any."""
        del store
        return {}

    def stuck_threads(self, turn_seconds: float | None = None) -> Collection[Stuck]:
        """There are no threads."""
        del turn_seconds
        return ()

    def describe(self) -> Mapping[str, Any]:
        """There is no server that would show it."""
        return {}

    def measure(self) -> Measurements:
        """Nor this."""
        return Measurements()
