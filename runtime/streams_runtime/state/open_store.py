"""From a store's specification to its open partition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.store_recorder import StoreRecorder
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions
from streams_runtime.state.store import KeyValueStore
from streams_runtime.state.suppress_store import SuppressStore
from streams_runtime.state.versioned_store import VersionedStore
from streams_runtime.state.window_store import DedupeStore, JoinStore, SessionStore, WindowStore
from streams_runtime.topology.store_specs import StoreSpec

AnyStore = KeyValueStore | WindowStore | SessionStore | JoinStore | DedupeStore

_SEGMENTED: dict[str, type[WindowStore | SessionStore | JoinStore | DedupeStore]] = {
    "window": WindowStore,
    "session": SessionStore,
    "join": JoinStore,
    "dedupe": DedupeStore,
}


def key_value_store(stores: Mapping[str, AnyStore], name: str) -> KeyValueStore:
    """The store of this name, of which the topology says that it is of that kind."""
    return cast(KeyValueStore, stores[name])


def versioned_store(stores: Mapping[str, AnyStore], name: str) -> VersionedStore:
    """The store of this name, of which the topology says that it has a history."""
    return cast(VersionedStore, stores[name])


def processor_store(stores: Mapping[str, AnyStore], name: str) -> KeyValueStore | WindowStore | SessionStore:
    """Likewise the store of a process step, which is of one of these kinds."""
    return cast(KeyValueStore | WindowStore | SessionStore, stores[name])


def open_store(
    spec: StoreSpec,
    partition: int,
    folder: Path,
    measured: StoreRecorder | None = None,
    options: RocksDBOptions = DEFAULT_OPTIONS,
) -> AnyStore:
    """Open, or make, one partition of the store in `folder`; `measured`: what measures its reads.

    Raises:
        ProcessorStateException: the folder can't be used.
    """
    changelog = TopicPartition(spec.changelog_topic, partition)
    if spec.history is not None:
        return VersionedStore(spec.name, changelog, folder, spec.history, measured, options)
    windowing = spec.windowing
    if windowing is None:
        kept = SuppressStore if spec.kind == "suppress" else KeyValueStore
        return kept(spec.name, changelog, folder, measured, options)
    kind, retention = _SEGMENTED[spec.kind], windowing.retention
    return kind(spec.name, changelog, folder, retention, windowing.segment_interval, measured, options)
