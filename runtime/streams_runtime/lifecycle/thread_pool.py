"""The threads of one client: started, added, removed (KIP-663), replaced, and ended together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Generic, Protocol, TypeVar

from streams_runtime.errors import TimeoutException
from streams_runtime.states import ThreadState

_ENDING = frozenset({ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD})


class StreamThreadHandle(Protocol):
    """A stream thread (threads.StreamThread)."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> ThreadState: ...

    @property
    def is_current(self) -> bool:
        """Whether it is the thread that calls."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def join(self, timeout: float | None = None) -> bool:
        """Wait until it is DEAD and gone; False after `timeout` seconds, and at once for the thread that calls."""


T = TypeVar("T", bound=StreamThreadHandle)


class ThreadPool(Generic[T]):
    """Threads by number, from 1 on. A number is free again when its thread is DEAD. Safe to use from any thread."""

    def __init__(self, make: Callable[[int], T], failed: Callable[[BaseException], object]) -> None:
        """`failed` hears of an exception that kept a replacement from starting."""
        self._make = make
        self._failed = failed
        self._lock = threading.Lock()
        self._threads: dict[int, T] = {}  # replaced as a whole, so that it may be read without the lock
        self._replacing: dict[int, threading.Thread] = {}
        self._leaving: set[T] = set()
        self._closing = threading.Event()

    @property
    def threads(self) -> Sequence[T]:
        """The threads by number; a DEAD one stays until its number is given away, or it is removed."""
        return tuple(self._threads[number] for number in sorted(self._threads))

    @property
    def all_running(self) -> bool:
        """Whether there are threads, and all are RUNNING but those that are on their way out."""
        live = [each.state for each in self._threads.values() if each.state not in _ENDING]
        return bool(live) and not self._replacing and all(state is ThreadState.RUNNING for state in live)

    def start(self, count: int) -> None:
        """Start this many threads. Raises what making one raises."""
        with self._lock:
            self._threads = {number: self._make(number) for number in range(1, count + 1)}
            for each in self.threads:
                each.start()

    def add(self) -> str | None:
        """Start one more under the lowest free number, and return its name; None once `close` was called."""
        with self._lock:
            if self._closing.is_set():
                return None
            taken = {
                number: each
                for number, each in self._threads.items()
                if each.state is not ThreadState.DEAD or number in self._replacing
            }
            number = next(number for number in range(1, len(taken) + 2) if number not in taken)
            thread = self._make(number)
            self._threads = {**taken, number: thread}
            thread.start()
            return thread.name

    def remove(self, timeout: float | None) -> T | None:
        """End one thread in order and return it; None when there is none to end.

        The first that is not the calling one. A thread that is alone may remove itself: then nothing is waited for.

        Raises:
            TimeoutException: it has not ended within `timeout` seconds, and goes on ending.
        """
        with self._lock:
            thread = self._to_remove()
            if thread is None:
                return None
            self._leaving.add(thread)
            # One that is dead, and was to be replaced, is not replaced.
            number = next(number for number, each in self._threads.items() if each is thread)
            self._replacing.pop(number, None)
        thread.stop()
        if thread.is_current:
            return thread
        if not thread.join(timeout):
            raise TimeoutException(
                f"{thread.name} has not ended within {timeout:g} s; it is {thread.state} and goes on ending. Its number"
                " is free when it is DEAD"
            )
        with self._lock:
            self._leaving.discard(thread)
            self._threads = {number: each for number, each in self._threads.items() if each is not thread}
        return thread

    def replace(self, thread: T, delay: float) -> None:
        """Start another one under the number of `thread`, `delay` seconds after that is gone. Returns at once."""
        with self._lock:
            number = next((number for number, each in self._threads.items() if each is thread), None)
            if number is None or thread in self._leaving or self._closing.is_set():
                return
            successor = threading.Thread(
                target=self._succeed, args=(number, thread, delay), name=f"{thread.name}-successor", daemon=True
            )
            self._replacing[number] = successor
            successor.start()

    def close(self, grace: float, hurry: Callable[[], None]) -> None:
        """End all threads, `hurry` them after `grace` seconds, and return when all are gone. No thread starts then.

        Whatever one of these steps raises is raised when all are gone: no other is left out for it.
        """
        with self._lock:
            self._closing.set()
            threads, successors = self.threads, list(self._replacing.values())
        with ExitStack() as ending:  # carried out from the last one to the first
            for successor in successors:
                ending.callback(successor.join)
            for each in threads:
                ending.callback(each.join)
            ending.callback(_hurried, threads, grace, hurry)
            for each in threads:
                ending.callback(each.stop)

    def _to_remove(self) -> T | None:
        if self._closing.is_set():
            return None
        live = [each for each in self.threads if each.state not in _ENDING and each not in self._leaving]
        waiting = [self._threads[number] for number in sorted(self._replacing)]
        others = [each for each in live if not each.is_current] or waiting
        return next(iter(others or live), None)

    def _succeed(self, number: int, thread: T, delay: float) -> None:
        thread.join()
        if self._closing.wait(delay):
            return
        try:
            with self._lock:
                # Somebody may have removed it meanwhile.
                if self._replacing.pop(number, None) is None or self._closing.is_set():
                    return
                successor = self._make(number)
                self._threads = {**self._threads, number: successor}
                successor.start()
        except Exception as error:
            self._failed(error)


def _hurried(threads: Sequence[StreamThreadHandle], grace: float, hurry: Callable[[], None]) -> None:
    """Wait `grace` seconds for all threads; `hurry` where that is not enough."""
    deadline = time.monotonic() + grace
    if not all(each.join(max(deadline - time.monotonic(), 0)) for each in threads):
        hurry()
