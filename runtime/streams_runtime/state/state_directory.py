"""The state folder: one folder a task, and a lock that names the process which owns it all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from streams_runtime.errors import LockException, ProcessorStateException
from streams_runtime.metrics.store_recorder import StoreRecorders
from streams_runtime.state.database.damaged_files import DAMAGED
from streams_runtime.state.database.rocksdb_options import DEFAULT_OPTIONS, RocksDBOptions
from streams_runtime.state.task_folders import TaskFolders
from streams_runtime.topology.plan import TaskId

_LOGGER = logging.getLogger("streams_runtime.state")
_LOCK = ".lock"
_QUARANTINE = "quarantine"
_GLOBAL = "global"
CHECKPOINTS, DOWNLOADS, DELETED = "checkpoints", "downloads", "deleted"
"""Folders of a task beside `rocksdb`: of a snapshot that is being made, and of one that is being fetched."""
_KEPT_IN_QUARANTINE = 3  # folders of damaged stores; they take space, and one is enough to find the cause


class StateDirectory:
    """`<base>/<application>/<task>/rocksdb/<store>`, as Kafka Streams lays it out; `global` stands for a task.

    One process at a time owns `<base>/<application>`: an advisory lock on a file that says who it is. The kernel
    drops the lock when the process dies, however it dies.
    """

    def __init__(
        self,
        base: Path,
        application_id: str,
        owner: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        measured: StoreRecorders | None = None,
        options: RocksDBOptions = DEFAULT_OPTIONS,
    ) -> None:
        """`owner` names the process for the lock's file; `measured` measures the stores that are opened here."""
        self._root = base / application_id
        self._owner = owner
        self._now = now
        self._lock_fd: int | None = None
        self.tasks = TaskFolders(self._root)
        """Which tasks' folders are in use; whoever opens a task's stores says so there."""
        self.measured = StoreRecorders() if measured is None else measured
        """What measures the stores that are opened here."""
        self.options = options
        """The options, and the memory, of the stores that are opened here."""
        self.quarantined = 0
        """How many damaged stores were set aside since this object was made."""

    @property
    def root(self) -> Path:
        """The application's folder."""
        return self._root

    def acquire(self) -> None:
        """Make the folder and take the lock.

        Raises:
            LockException: another live process has it; the message names that process.
            ProcessorStateException: the folder can't be made or written.
        """
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = self._holder(descriptor)
            os.close(descriptor)
            raise LockException(
                f"state folder {self._root} is in use by {holder}. Stop that process, or give this one a folder of"
                " its own (--state-dir)"
            ) from error
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(self._identity()).encode(), 0)
        except OSError as error:
            os.close(descriptor)
            raise self._unusable(error) from error
        self._lock_fd = descriptor

    def release(self) -> None:
        """Give the lock back. May be called twice."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def store_folder(self, task: TaskId, store: str) -> Path:
        """Folder of a store's RocksDB; its parents are made.

        Raises:
            ProcessorStateException: the folder can't be made.
        """
        return self._store_folder(str(task), store)

    def remove_unfinished(self, task: TaskId) -> None:
        """Delete what an earlier process, or an earlier life of the task here, has left of snapshots and deletions."""
        for each in (CHECKPOINTS, DOWNLOADS, DELETED):
            shutil.rmtree(self._root / str(task) / each, ignore_errors=True)

    def global_store_folder(self, store: str) -> Path:
        """Folder of a global table's RocksDB, which is no task's; its parents are made, and what was left of deletions
        goes.

        Raises:
            ProcessorStateException: the folder can't be made.
        """
        shutil.rmtree(self._root / _GLOBAL / DELETED, ignore_errors=True)
        return self._store_folder(_GLOBAL, store)

    def _store_folder(self, owner: str, store: str) -> Path:
        folder = self._root / owner / "rocksdb" / store
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error
        return folder

    def quarantine(self, folder: Path, reason: str) -> Path:
        """Set the folder of a damaged store aside, for a person to look at; returns where it lies now.

        `<root>/quarantine/<time>-<task>-<store>`; the newest three stay there. The store is closed, and a new one may
        be made in its place.

        Raises:
            ProcessorStateException: the folder can't be moved.
        """
        task, store = folder.parent.parent.name, folder.name
        shelf = self._root / _QUARANTINE
        place = shelf / f"{self._now():%Y%m%dT%H%M%S.%fZ}-{task}-{store}"
        try:
            shelf.mkdir(exist_ok=True)
            folder.rename(place)
        except OSError as error:
            raise self._unusable(error) from error
        self.quarantined += 1
        DAMAGED.forget(folder)
        _LOGGER.error(
            "The files of store %s of task %s are damaged: %s. They lie in %s now, for you to look at and to delete;"
            " the store is restored from its changelog, no other is touched",
            store,
            task,
            reason,
            place,
        )
        for old in sorted(shelf.iterdir())[:-_KEPT_IN_QUARANTINE]:
            shutil.rmtree(old, ignore_errors=True)
        return place

    def remove(self, folder: Path) -> None:
        """Delete a folder of this directory with all that is in it; no error when it is not there."""
        try:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder)
        except OSError as error:
            raise self._unusable(error) from error

    def __enter__(self) -> StateDirectory:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _identity(self) -> dict[str, object]:
        return {"pid": os.getpid(), "host": socket.gethostname(), "instance": self._owner}

    def _holder(self, descriptor: int) -> str:
        try:
            holder = json.loads(os.pread(descriptor, 4096, 0))
            return f"process {holder['pid']} on {holder['host']} (instance {holder['instance']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process, which has not written its name yet"

    def _unusable(self, error: OSError) -> ProcessorStateException:
        return ProcessorStateException(
            f"state folder {self._root} can't be used: {error.strerror or error}. Give the process a folder that it"
            " may write and that has space; what is stored there is intact"
        )
