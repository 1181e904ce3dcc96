"""What came too late, as warnings: one a step and half a minute, with how often it was since the start."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable

_LOGGER = logging.getLogger("streams_runtime.late")
_INTERVAL = 30.0  # seconds between two warnings of one step


class LateLog:
    """Warns for one thread. Used by that thread only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        self._warned: dict[str, float] = {}
        self._totals: Counter[str] = Counter()

    def take(self, step: str, late: int, outcome: str) -> None:
        """So many times a record of a batch was too late for the step; `outcome`: what became of them."""
        if not late:
            return
        self._totals[step] += late
        now = self._clock()
        if now - self._warned.get(step, float("-inf")) >= _INTERVAL:
            self._warned[step] = now
            _LOGGER.warning("step %s: %d times a record came too late: %s", step, self._totals[step], outcome)
