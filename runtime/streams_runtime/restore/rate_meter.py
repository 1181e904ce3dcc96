"""Meter: how many records a second, over the last half minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

_WINDOW_SECONDS = 30.0  # Kafka Streams' metrics.sample.window.ms


class Meter:
    """Counts records and tells their rate. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began = clock()
        self._parts: deque[tuple[float, int]] = deque()
        self.total = 0

    def add(self, records: int) -> None:
        """So many more."""
        with self._lock:
            self.total += records
            self._parts.append((self._clock(), records))
            self._forget()

    @property
    def rate(self) -> float:
        """Records a second over the last 30 s, or since the meter was made if that is less."""
        with self._lock:
            self._forget()
            seconds = min(max(self._clock() - self._began, 1.0), _WINDOW_SECONDS)
            return sum(records for _, records in self._parts) / seconds

    def _forget(self) -> None:
        horizon = self._clock() - _WINDOW_SECONDS
        while self._parts and self._parts[0][0] < horizon:
            self._parts.popleft()
