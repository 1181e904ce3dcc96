"""The state folder: one folder a task, and a lock that names the process which owns it all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
from pathlib import Path
from types import TracebackType

from streams_runtime.errors import LockException, ProcessorStateException
from streams_runtime.topology.plan import TaskId

_LOCK = ".lock"


class StateDirectory:
    """`<base>/<application>/<task>/rocksdb/<store>`, as Kafka Streams lays it out.

    One process at a time owns `<base>/<application>`: an advisory lock on a file that says who it is. The kernel
    drops the lock when the process dies, however it dies.
    """

    def __init__(self, base: Path, application_id: str, owner: str) -> None:
        self._root = base / application_id
        self._owner = owner
        self._lock_fd: int | None = None

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
        folder = self._root / str(task) / "rocksdb" / store
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error
        return folder

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
