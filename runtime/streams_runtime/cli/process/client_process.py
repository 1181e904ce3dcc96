"""What every process with one streams client shares: its signals, its exit code, its termination message."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import NoReturn

import orjson
import typer

from streams_runtime.errors import message_of
from streams_runtime.states import EXIT_ERROR, EXIT_NOT_RUNNING, ClientState

EXIT_LATE = 75
"""The client did not close in time. Counts as a crash."""
SHUTDOWN_APPLICATION = "application"
"""Value of `shutdown` in the termination message of a client that requests the end of all others of its application."""
_SWITCH_INTERVAL = 0.0005  # seconds


def shorten_switch_interval() -> None:
    """Let threads release Python's lock after half a millisecond, a tenth of the default.

    The thread that answers queries needs it for a fifth of a millisecond and waits for those that process records: the
    99th percentile of 500 point queries a second is 139 ms with the default and 26 with this.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL)


def freeze_loaded_objects(spark_ready: bool) -> None:
    """Once Spark is ready, freeze all objects that are loaded by then, so that Python's collector skips them.

    These are some hundred thousand objects of modules and plans, which stay; to traverse them all takes 180 ms, in
    which no thread goes on.
    """
    if spark_ready and not gc.get_freeze_count():
        gc.freeze()


def stop_on_signals() -> threading.Event:
    """Let SIGTERM and SIGINT set the event that is returned, and do nothing else."""
    stop = threading.Event()

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)
    return stop


def exit_code(state: ClientState) -> int:
    """The exit code for a client that ended, or had to be left, in this state.

    A failure that could not free everything is a failure all the same: the process's end frees it, and it must not be
    started again before a person has examined it (KIP-696).
    """
    if state is ClientState.NOT_RUNNING:
        return EXIT_NOT_RUNNING
    return EXIT_ERROR if state in (ClientState.ERROR, ClientState.PENDING_ERROR) else EXIT_LATE


def leave(code: int, orderly: bool) -> NoReturn:
    """Leave the process. With a stuck thread Python would wait for it at its end, and the exit code would be lost."""
    if orderly:
        raise typer.Exit(code)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def termination_document(
    state: str, error: BaseException | None, shutdown_requested: bool = False
) -> dict[str, str | None]:
    """The termination message: how a client ended, by which exception, and whether all others are to end too."""
    document = {
        "state": str(state),
        "class": None if error is None else type(error).__name__,
        "message": "" if error is None else message_of(error),
    }
    return document | ({"shutdown": SHUTDOWN_APPLICATION} if shutdown_requested else {})


def write_whole(file: Path, content: Mapping[str, object]) -> None:
    """Whole or not at all: readers poll for the file."""
    fresh = file.with_name(file.name + ".new")
    fresh.write_bytes(orjson.dumps(content))
    fresh.replace(file)
