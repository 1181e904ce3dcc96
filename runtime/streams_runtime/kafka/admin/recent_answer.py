"""What the brokers said lately, for those who ask often and need not know it to the second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from streams_runtime.errors import BrokerNotAvailableException

_SECONDS = 1.0  # how long an answer is recent
T = TypeVar("T")


class RecentAnswer(Generic[T]):
    """An answer of the brokers that is asked for again only when it is old; the last one while they are away.

    Safe to use from several threads, of which one asks and the others wait for its answer.
    """

    def __init__(self, ask: Callable[[], T], nothing: T, clock: Callable[[], float] = time.monotonic) -> None:
        """`nothing` is the answer until the brokers have given one."""
        self._ask = ask
        self._answer = nothing
        self._clock = clock
        self._asked_at = float("-inf")
        self._lock = threading.Lock()

    def value(self) -> T:
        """The answer. Raises what asking raises, except that the brokers do not answer."""
        with self._lock:
            if self._clock() - self._asked_at >= _SECONDS:
                # The threads report that the brokers are away; here the last answer is the best there is.
                with suppress(BrokerNotAvailableException):
                    self._answer = self._ask()
                self._asked_at = self._clock()
            return self._answer
