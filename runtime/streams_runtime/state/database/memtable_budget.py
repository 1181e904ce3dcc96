"""Memtables of many databases within one number of bytes.

RocksDB's write buffer manager lets the database that is being written flush once the memtables of all are nearly as
large as they may be. Those that nobody writes keep theirs, and leave the others with ever smaller files. So the largest
one flushes here before it comes to that, whoever writes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

_FULL = 0.75  # of the bytes; RocksDB itself acts at seven eighths


class Spilling(Protocol):
    """An open database, as far as its memtables go."""

    def memtable_bytes(self) -> int:
        """Bytes that a flush would begin to give back; 0 while one is on its way, or when it is closed."""

    def spill(self) -> None:
        """Have the memtables written to files by other threads; returns at once, and raises nothing."""


class MemtableBudget:
    """The open databases whose memtables share `most` bytes. Safe to use from any thread."""

    def __init__(self, most: int, usage: Callable[[], int]) -> None:
        """`usage`: what all memtables hold, those included that are being written to files."""
        self._limit = int(most * _FULL)
        self._usage = usage
        self._lock = threading.Lock()
        self._databases: list[Spilling] = []

    def add(self, database: Spilling) -> None:
        """It is open."""
        with self._lock:
            self._databases.append(database)

    def remove(self, database: Spilling) -> None:
        """It is to be closed. May be called twice, and for one that was never open."""
        with self._lock:
            self._databases = [each for each in self._databases if each is not database]

    def keep(self) -> None:
        """Let the largest database spill where there is too little left."""
        if self._usage() <= self._limit:
            return
        with self._lock:
            sizes = [(each.memtable_bytes(), each) for each in self._databases]
        size, largest = max(sizes, key=lambda item: item[0], default=(0, None))
        if largest is not None and size:
            largest.spill()
