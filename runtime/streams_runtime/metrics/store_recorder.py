"""What is measured of the reads of stores at the level DEBUG, and RocksDB's statistics of partitions that have left."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping

from streams_runtime.metrics.metric_definition import Level
from streams_runtime.metrics.sampled import Reading, Sampled


class StoreRecorder:
    """The measurements of one store, over its partitions here. Safe to use from several threads: queries read too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._get = Sampled()
        self._keys = 0
        self._closed: Counter[str] = Counter()

    def got(self, keys: int, seconds: float) -> None:
        """A call has read so many keys."""
        with self._lock:
            self._get.record(seconds, self.clock())
            self._keys += keys

    def closed(self, statistics: Mapping[str, int]) -> None:
        """A partition is closed; its statistics stay in the totals, which only ever grow."""
        with self._lock:
            self._closed.update(statistics)

    def reading(self) -> tuple[Reading, int, Mapping[str, int]]:
        """The calls, the keys that they read, and the statistics of closed partitions."""
        with self._lock:
            return self._get.reading(self.clock()), self._keys, dict(self._closed)


class StoreRecorders:
    """The recorders of a client's stores by name; none at the level INFO, where reads are not measured."""

    def __init__(self, level: Level = Level.INFO) -> None:
        self._debug = level is Level.DEBUG
        self._lock = threading.Lock()
        self._recorders: dict[str, StoreRecorder] = {}

    def of(self, store: str) -> StoreRecorder | None:
        """The one of the store; None: it is not measured."""
        if not self._debug:
            return None
        with self._lock:
            return self._recorders.setdefault(store, StoreRecorder())

    @property
    def all(self) -> Mapping[str, StoreRecorder]:
        """Those that there are; a copy."""
        with self._lock:
            return dict(self._recorders)
