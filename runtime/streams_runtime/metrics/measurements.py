"""What a client has measured, as a scrape takes it: recorders to read, and figures that were read for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streams_runtime.metrics.metric_definition import Level
from streams_runtime.metrics.process_memory import ProcessKind
from streams_runtime.metrics.store_recorder import StoreRecorder
from streams_runtime.metrics.thread_recorder import ThreadRecorder


@dataclass(frozen=True, slots=True)
class Measurements:
    """`threads`: of the stream threads that there are, by name; `recorders`: of all, also of those that are gone and of
    the global tables. `properties` and `statistics`: RocksDB's, by store, its open partitions added up, and beside its
    properties what waits in a suppress. `stores`: what measures reads, at DEBUG. `cache`: the block cache's bytes.
    `processes`: number and resident bytes by kind.
    """

    level: Level = Level.INFO
    version: str = ""
    threads: Mapping[str, ThreadRecorder] = field(default_factory=dict)
    recorders: Sequence[ThreadRecorder] = ()
    properties: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    statistics: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    stores: Mapping[str, StoreRecorder] = field(default_factory=dict)
    cache: Mapping[str, int] = field(default_factory=dict)
    processes: Mapping[ProcessKind, tuple[int, int]] = field(default_factory=dict)
