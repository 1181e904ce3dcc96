"""Calls of users' code: an exception in one of them is told and goes no further, and no such call waits for itself."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

_LOGGER = logging.getLogger("streams_runtime.client")
P = ParamSpec("P")


class Callbacks:
    """Knows which threads are inside of users' code now. Safe to use from any thread."""

    def __init__(self, own_threads: str) -> None:
        """`own_threads`: what the names of the client's own threads begin with; those run nothing but its code, and
        callbacks.
        """
        self._own_threads = own_threads
        self._here = threading.local()

    @property
    def inside(self) -> bool:
        """Whether the calling thread is in users' code, which the client may be waiting for."""
        return bool(getattr(self._here, "depth", 0)) or threading.current_thread().name.startswith(self._own_threads)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Users' code runs in this block."""
        self._here.depth = getattr(self._here, "depth", 0) + 1
        try:
            yield
        finally:
            self._here.depth -= 1

    def guarded(self, what: str, call: Callable[P, object]) -> Callable[P, None]:
        """`call`, with its exceptions logged as those of `what`."""

        def guard(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                with self.entered():
                    call(*args, **kwargs)
            except Exception as error:
                _LOGGER.error("%s failed with %s: %s. The client goes on", what, type(error).__name__, error)
                _LOGGER.debug("stack trace", exc_info=error)

        return guard
