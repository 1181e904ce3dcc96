"""Back-off: how long something that failed waits before it is tried again, twice as long after each further failure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

_MOST_DOUBLINGS = 64  # more than any two limits are apart, and few enough for a float


def backoff_delay(earlier: int, first: float, longest: float) -> float:
    """Seconds to wait after a failure that `earlier` failures in a row came before: from `first` doubling to `longest`.

    It has no jitter. A caller that is one of many spreads its own, so that they do not all try again at one moment.
    """
    return min(first * 2.0 ** min(earlier, _MOST_DOUBLINGS), longest)


def backoff(first: float, longest: float, jitter: Callable[[], float] = random.random) -> Iterator[float]:
    """Seconds before each further attempt, without end: 50 to 100 % of `backoff_delay`.

    `jitter` gives numbers from 0 to 1. It keeps a hundred pods from asking in step when their broker comes back.
    """
    for earlier in count():
        yield backoff_delay(earlier, first, longest) * (0.5 + 0.5 * jitter())
