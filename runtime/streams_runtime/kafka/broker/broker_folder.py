"""The embedded broker's folder: its data, settings and logs, and the lock of the process that uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from pathlib import Path
from typing import IO

from streams_runtime.errors import EnvironmentException

# What a format that never became a running broker may leave behind.
_FORMAT_FILES = frozenset({"meta.properties", "bootstrap.checkpoint", ".lock", ".kafka_cleanshutdown"})
_FRAME = re.compile(r"\s+(at |\.\.\. \d+ )")


class BrokerFolder:
    """One folder; one process at a time may hold it. The kernel frees it when that process dies."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.data = self.root / "kafka"
        self.logs = self.root / "logs"
        self.settings = self.root / "server.properties"
        self.logging = self.root / "log4j2.properties"
        self.console = self.logs / "console.log"
        self.log = self.logs / "server.log"
        self._lock: IO[str] | None = None

    def acquire(self) -> None:
        """Make the folder and hold it.

        Raises EnvironmentException when it can't be written, or naming the process that holds it.
        """
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            lock = (self.root / "broker.lock").open("a+")
        except OSError as failure:
            raise EnvironmentException(
                f"the broker's data folder {self.root} can't be used:"
                f" {(failure.strerror or str(failure)).lower()}. Give one that this user can write"
                " (--data-dir)"
            ) from failure
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.read().strip() or "(its id is not known)"
            lock.close()
            raise EnvironmentException(
                f"the broker's data folder {self.root} is in use by process {owner}."
                " Stop that one, or give another folder (--data-dir)"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def release(self) -> None:
        """Let others use the folder. May be called twice."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def needs_format(self) -> bool:
        """Whether no broker has started on this storage; leftovers of an unfinished format are removed then.

        Raises EnvironmentException when there is something else in its place.
        """
        if (self.data / "__cluster_metadata-0").is_dir():
            return False
        if self.data.is_dir():
            strange = sorted(each.name for each in self.data.iterdir() if each.name not in _FORMAT_FILES)
            if strange:
                raise EnvironmentException(
                    f"{self.data} is not a broker's data: it holds {', '.join(strange[:3])}."
                    " Give another folder (--data-dir)"
                )
            shutil.rmtree(self.data)
        return True

    def last_words(self, lines: int = 12) -> str:
        """The end of the broker's log, and of what the JVM printed."""
        found: list[str] = []
        for path in (self.log, self.console):
            with contextlib.suppress(FileNotFoundError):
                found += without_stack(path.read_text(errors="replace"))[-lines:]
        return "\n".join(found)


def without_stack(text: str) -> list[str]:
    """The lines of a JVM's output that speak to people: those of its stack traces are left out."""
    return [line for line in text.splitlines() if line.strip() and not _FRAME.match(line)]
