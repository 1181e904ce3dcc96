"""What every process with one streams client shares: its signals, its exit code, its last word."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

import orjson


def stop_on_signals() -> threading.Event:
    """From now on SIGTERM and SIGINT set the event that is returned, and do nothing else."""
    asked = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        asked.set()

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    return asked


def last_word(state: str, error: BaseException | None) -> dict[str, str | None]:
    """The termination message: how a client ended, and by which exception."""
    return {"state": str(state), "class": type(error).__name__ if error else None, "message": str(error or "")}


def write_whole(file: Path, content: Mapping[str, object]) -> None:
    """Whole or not at all: readers poll for the file."""
    fresh = file.with_name(file.name + ".new")
    fresh.write_bytes(orjson.dumps(content))
    fresh.replace(file)
