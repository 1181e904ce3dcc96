"""Run inside a mount namespace of its own: what a small or read-only disk does to the state folder.

Mounts a tmpfs on the folder, plays one scenario, and prints what was seen as one JSON object. The mount is gone with
the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.database.rocksdb_adapter import write_sst
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store import KeyValueStore, Updates, stamp
from streams_runtime.topology.plan import TaskId

_DISK_BYTES = 8 * 1024 * 1024
_BALLAST_BYTES = 4 * 1024 * 1024
_KEYS = [f"{number:03}".encode() for number in range(100)]
_TASK = TaskId(0, 0)


def _open(base: Path) -> KeyValueStore:
    folder = StateDirectory(base, "app", "test").store_folder(_TASK, "totals")
    return KeyValueStore("totals", TopicPartition("app-totals-changelog", 0), folder)


def _write(store: KeyValueStore, offset: int) -> None:
    """A batch in which every value names the offset; random bytes, so that nothing compresses them."""
    values = [b"%d|" % offset + os.urandom(500) for _ in _KEYS]
    store.write(Updates(_KEYS, values, [1] * len(_KEYS)), offset)


def _offsets_in(store: KeyValueStore) -> list[int]:
    return sorted({int(value.partition(b"|")[0]) for _, value in store.scan(None, None)})


def _error_of(call: Callable[[], object]) -> list[str] | None:
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return None


def _full_store(base: Path) -> dict[str, Any]:
    ballast = base / "ballast"
    ballast.write_bytes(bytes(_BALLAST_BYTES))
    store, offset, error = _open(base), 0, None
    while error is None and offset < 1000:
        offset += 1
        error = _error_of(partial(_write, store, offset))
    seen = {"error": error, "refused_at": offset, "while_full": [_offsets_in(store), store.offset()]}
    seen["close_error"] = _error_of(store.close)
    ballast.unlink()
    again = _open(base)
    seen["reopened"] = [_offsets_in(again), again.offset()]
    _write(again, 5000)
    again.close()
    again = _open(base)
    seen["written_afterwards"] = [_offsets_in(again), again.offset()]
    again.close()
    return seen


def _full_open(base: Path) -> dict[str, Any]:
    _fill(base / "ballast")
    seen: dict[str, Any] = {"error": _error_of(lambda: _open(base))}
    (base / "ballast").unlink()
    store = _open(base)
    _write(store, 1)
    seen["written_afterwards"] = [_offsets_in(store), store.offset()]
    store.close()
    return seen


def _full_bulk(base: Path) -> dict[str, Any]:
    store = _open(base)
    _write(store, 7)
    big = [(f"{n:06}".encode(), stamp(1, os.urandom(1000))) for n in range(20_000)]
    seen: dict[str, Any] = {"error": _error_of(lambda: write_sst(base / "big.sst", big))}
    (base / "big.sst").unlink(missing_ok=True)
    seen["afterwards"] = [_offsets_in(store), store.offset()]
    store.close()
    return seen


def _full_lock(base: Path) -> dict[str, Any]:
    _fill(base / "ballast")
    seen: dict[str, Any] = {"error": _error_of(StateDirectory(base, "app", "test").acquire)}
    (base / "ballast").unlink()
    seen["afterwards"] = _error_of(StateDirectory(base, "app", "test").acquire)
    return seen


def _read_only(base: Path) -> dict[str, Any]:
    store = _open(base)
    _write(store, 7)
    store.close()
    _mount(base, "remount,ro")
    directory = StateDirectory(base, "app", "test")
    seen: dict[str, Any] = {
        "open": _error_of(lambda: _open(base)),
        "lock": _error_of(directory.acquire),
        "folder": _error_of(lambda: directory.store_folder(TaskId(1, 0), "totals")),
        "remove": _error_of(lambda: directory.remove(directory.root)),
    }
    _mount(base, "remount,rw")
    store = _open(base)
    seen["afterwards"] = [_offsets_in(store), store.offset()]
    store.close()
    return seen


SCENARIOS = {
    "full-store": _full_store,
    "full-open": _full_open,
    "full-bulk": _full_bulk,
    "full-lock": _full_lock,
    "read-only": _read_only,
}


def _fill(path: Path) -> None:
    """Take all the space there is, to the last page."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def _mount(base: Path, options: str) -> None:
    """Mount again with other options; RocksDB may take a moment to let go of its last file."""
    deadline = time.monotonic() + 60
    while subprocess.run(["mount", "-o", options, str(base)], check=False, capture_output=True).returncode:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{base} stays in use")
        time.sleep(0.05)


def main(name: str, base: Path) -> None:
    """Mount, play, print."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(base)], check=True)
    print(json.dumps(SCENARIOS[name](base)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
