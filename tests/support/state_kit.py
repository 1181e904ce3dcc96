"""Folders and stores for tests of state: in memory where the machine can, since RocksDB syncs every file it makes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.store import KeyValueStore, unstamp
from streams_runtime.state.window_store import SessionStore, WindowStore

_SHARED_MEMORY = Path("/dev/shm")


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder that is gone at the end, in memory if the machine has a folder for that."""
    parent = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="streamsapp-test-", dir=parent) as folder:
        yield Path(folder)


@contextmanager
def key_value_store(folder: Path, name: str = "totals", partition: int = 0) -> Iterator[KeyValueStore]:
    """An open store in a folder of its own below `folder`, closed at the end."""
    changelog = TopicPartition(f"app-{name}-changelog", partition)
    store = KeyValueStore(name, changelog, folder / f"{name}-{partition}")
    try:
        yield store
    finally:
        store.close()


@contextmanager
def window_store(folder: Path, retention: int, name: str = "windows") -> Iterator[WindowStore]:
    """An empty partition of a window store in a folder of that name."""
    store = WindowStore(name, TopicPartition(f"app-{name}-changelog", 0), folder / name, retention, 60_000)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def session_store(folder: Path, retention: int, name: str = "sessions") -> Iterator[SessionStore]:
    """Likewise of a session store."""
    store = SessionStore(name, TopicPartition(f"app-{name}-changelog", 0), folder / name, retention, 60_000)
    try:
        yield store
    finally:
        store.close()


def contents(store: KeyValueStore) -> dict[bytes, bytes]:
    """All that a store holds, without timestamps."""
    return dict(store.scan(None, None))


def json_contents(store: KeyValueStore) -> list[tuple[bytes, Any, int]]:
    """Key, JSON value and time of all that a store holds."""
    keys = [key for key, _ in store.scan(None, None)]
    stored = [unstamp(each) for each in store.get_stored(keys) if each is not None]
    return [(key, json.loads(value), time) for key, (time, value) in zip(keys, stored, strict=True)]
