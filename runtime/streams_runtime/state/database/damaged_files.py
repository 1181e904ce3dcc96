"""Damaged files told apart from a full disk and missing rights, and the folders in which some were found."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

# RocksDB's name for contents that contradict a checksum, a size, or each other.
_CORRUPTION = "Corruption:"
_GONE = "No such file or directory"


def is_damage(reason: str, folder: Path) -> bool:
    """Whether RocksDB's error text says that files of the store in `folder` are damaged or missing.

    No space, no rights, a read-only disk and a lock are other troubles: the files are whole, and come back with the
    disk. So is an input/output error, which is the disk's own.
    """
    return _CORRUPTION in reason or (_GONE in reason and f"{folder}/" in reason)


class DamagedFolders:
    """Folders of stores in which damage was found, by whoever read them. Safe to use from any thread.

    A query may be the first to read a damaged block, on a thread that may not touch the store; the thread that has the
    task looks here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: dict[Path, str] = {}
        self._ever: set[Path] = set()

    def note(self, folder: Path, reason: str) -> None:
        """Damage was found in `folder`."""
        with self._lock:
            self._folders.setdefault(folder, reason)
            self._ever.add(folder)

    def was_in(self, folder: Path) -> bool:
        """Whether damage was ever found there by this process, also if those files have gone since."""
        with self._lock:
            return folder in self._ever

    def of(self, folders: Iterable[Path]) -> dict[Path, str]:
        """Those of `folders` in which, or below which, damage was found, each with RocksDB's words."""
        if not self._folders:
            return {}
        with self._lock:
            found = dict(self._folders)
        return {
            each: reason for each in folders for at, reason in found.items() if at == each or at.is_relative_to(each)
        }

    def forget(self, folder: Path) -> None:
        """The folder is no longer there."""
        with self._lock:
            self._folders = {at: why for at, why in self._folders.items() if not at.is_relative_to(folder)}


DAMAGED = DamagedFolders()
"""Those of this process; stores are opened in folders of their own, so that clients do not meet here."""
