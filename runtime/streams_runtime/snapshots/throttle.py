"""A bound on how many bytes a second go through."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator


class Throttle:
    """Lets bytes through at a rate. One thread uses it."""

    def __init__(
        self,
        rate: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """`rate` in bytes a second."""
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._free_at = 0.0

    def through(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks, each when the ones before it have had their time."""
        for chunk in chunks:
            now = self._clock()
            if self._free_at > now:
                self._sleep(self._free_at - now)
            self._free_at = max(self._free_at, now) + len(chunk) / self._rate
            yield chunk
