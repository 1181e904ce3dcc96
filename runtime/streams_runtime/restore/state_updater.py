"""The state updater: the thread that restores the stores of a stream thread's tasks while that one goes on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from typing import Protocol

from streams_runtime.errors import BrokerNotAvailableException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.changelog_reader import RestoringTask
from streams_runtime.restore.rate_meter import Meter
from streams_runtime.restore.restorer import StateRestorer

_LOGGER = logging.getLogger("streams_runtime.restore")
_RETRY = 1.0  # seconds until the broker is asked again


class Reader(Protocol):
    """What follows changelogs: StoreChangelogReader to their ends, StandbyReader for ever."""

    @property
    def busy(self) -> bool: ...

    @property
    def loading(self) -> bool: ...

    def register(self, restorer: StateRestorer) -> None: ...

    def unregister(self, partitions: Collection[TopicPartition]) -> None: ...

    def restore(self, tasks: Mapping[TopicPartition, RestoringTask]) -> set[TopicPartition]: ...

    def clear(self) -> None: ...


class StateUpdater:
    """Owns a reader of changelogs and the thread that turns it.

    The stream thread calls everything; `remove` returns only when the updater no longer touches those stores.
    """

    def __init__(
        self, name: str, make_reader: Callable[[], tuple[Reader, Callable[[], None]]], spent: Meter | None = None
    ) -> None:
        """`make_reader` gives the reader and what frees it; both are called on the updater's own thread.

        `spent` counts the microseconds in which the reader had something to do.
        """
        self._spent = spent or Meter()
        self._make_reader = make_reader
        self._changed = threading.Condition()
        self._new: list[StateRestorer] = []
        self._gone: set[TopicPartition] = set()
        self._tasks: dict[TopicPartition, RestoringTask] = {}
        self._completed: set[TopicPartition] = set()
        self._stopping = False
        self._loading = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, stores: Mapping[StateRestorer, RestoringTask]) -> None:
        """Restore these stores, each of a task; those that come together share their workers best."""
        with self._changed:
            self._tasks |= {restorer.partition: task for restorer, task in stores.items()}
            self._new += stores
            self._loading = self._loading or bool(stores)
            self._changed.notify_all()

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """Let go of these changelog partitions; returns when that is done."""
        with self._changed:
            self._new = [restorer for restorer in self._new if restorer.partition not in partitions]
            self._gone |= set(partitions)
            self._completed -= set(partitions)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._gone or self._failure or not self._thread.is_alive())
            self._completed -= set(partitions)

    @property
    def loading(self) -> bool:
        """Whether stores are being loaded in bulk, or may be as soon as their changelogs have been looked at."""
        return self._loading

    def completed(self) -> set[TopicPartition]:
        """Changelog partitions that are complete since the last call.

        Raises whatever ended the updater: the caller's own thread can't go on without it.
        """
        with self._changed:
            if self._failure is not None:
                raise self._failure
            done, self._completed = self._completed, set()
            return done

    def stop(self) -> None:
        """End the thread; returns when it is gone. May be called twice, and before `start`."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            reader, free = self._make_reader()
            with ExitStack() as resources:
                resources.callback(free)
                resources.callback(reader.clear)  # which tells the user's listener, and may fail by it
                while self._take_orders(reader):
                    self._turn(reader)
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._gone.clear()
                self._changed.notify_all()

    def _take_orders(self, reader: Reader) -> bool:
        """Wait until there is something to do, and take it over; False when the thread has to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._new or self._gone or reader.busy)
            if self._gone:
                reader.unregister(self._gone)
                for partition in self._gone:
                    self._tasks.pop(partition, None)
                self._gone.clear()
                self._changed.notify_all()
            for restorer in self._new:
                reader.register(restorer)
            self._new.clear()
            return not self._stopping

    def _turn(self, reader: Reader) -> None:
        if not reader.busy:
            self._loading = False
            return
        tasks: Mapping[TopicPartition, RestoringTask] = dict(self._tasks)
        began = time.monotonic()
        try:
            done = reader.restore(tasks)
            self._spent.add(int((time.monotonic() - began) * 1e6))
        except BrokerNotAvailableException as error:
            _LOGGER.warning("%s. Restoration waits", error)
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or bool(self._gone), timeout=_RETRY)
            return
        with self._changed:
            self._loading = reader.loading or bool(self._new)
        if done:
            with self._changed:
                # A partition that was removed meanwhile is not reported.
                self._completed |= done - self._gone
                reader.unregister(done)
                self._changed.notify_all()
