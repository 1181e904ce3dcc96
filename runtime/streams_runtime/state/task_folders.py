"""Which tasks' folders are in use, and the end of those that tasks have left behind (`state.cleanup.delay.ms`)."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from streams_runtime.topology.plan import TaskId

_LOGGER = logging.getLogger("streams_runtime.state")
_LOOKS = 10  # within a delay: a folder stays for the delay and a tenth of it at most
_SHORTEST, _LONGEST = 0.05, 60.0  # seconds between two looks


class TaskFolders:
    """The tasks' folders of one application on this machine. Safe to use from any thread.

    What an earlier process left counts from when it is first seen here: a restarted instance gets its tasks back, and
    must find their stores.
    """

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._lock = threading.Lock()  # a folder is deleted under it, so that nobody opens what is half there
        self._users: Counter[TaskId] = Counter()
        self._left: dict[TaskId, float] = {}

    @contextmanager
    def used(self, task: TaskId) -> Iterator[None]:
        """Nobody deletes the task's folder in this block."""
        with self._lock:
            self._users[task] += 1
        try:
            yield
        finally:
            with self._lock:
                self._users[task] -= 1
                self._left[task] = self._clock()

    def in_use(self, task: TaskId) -> bool:
        """Whether somebody of this process uses the task's folder."""
        with self._lock:
            return self._users[task] > 0

    @property
    def empty(self) -> bool:
        """Whether no task has a folder here."""
        return not self._there()

    def remove_left(self, delay: float) -> tuple[TaskId, ...]:
        """Delete the folders that no task has used for `delay` seconds; returns whose they were.

        One that can't be deleted is told in the log and tried again by the next call.
        """
        return tuple(task for task in self._there() if self._removed(task, delay))

    def _there(self) -> list[TaskId]:
        return sorted(task for each in self._root.iterdir() if (task := _task_of(each)) is not None)

    def _removed(self, task: TaskId, delay: float) -> bool:
        with self._lock:
            if self._users[task]:
                return False
            now = self._clock()
            idle = now - self._left.setdefault(task, now)
            if idle < delay:
                return False
            folder = self._root / str(task)
            _LOGGER.info(
                "Deleting obsolete state directory %s: task %s has not been here for %.0f s (state.cleanupDelay is"
                " %.0f s); its stores are in their changelogs",
                folder,
                task,
                idle,
                delay,
            )
            try:
                shutil.rmtree(folder)
            except OSError as error:
                _LOGGER.warning("%s can't be deleted: %s. It is tried again", folder, error.strerror or error)
                return False
            del self._left[task]
            return True


class StateCleaner:
    """Calls `remove_left` from a thread of its own, while `may_clean` says so (Kafka Streams' CleanupThread)."""

    def __init__(self, name: str, folders: TaskFolders, delay: float, may_clean: Callable[[], bool]) -> None:
        """`delay` in seconds."""
        self._folders = folders
        self._delay = delay
        self._may_clean = may_clean
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End it. May be called twice, and before `start`."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(min(max(self._delay / _LOOKS, _SHORTEST), _LONGEST)):
            if not self._may_clean():
                continue
            try:
                self._folders.remove_left(self._delay)
            except OSError as error:
                _LOGGER.warning("the state folder can't be looked through: %s", error)


def _task_of(folder: Path) -> TaskId | None:
    try:
        return TaskId.parse(folder.name)
    except ValueError:
        return None
