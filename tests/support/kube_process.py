"""Programs of a cluster as children of this process: started, waited for, and told of when they end early."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kept_logs import logs_of

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.child import TiedProcess
from streams_runtime.kafka.broker.ports import free_ports

LOOPBACK = "127.0.0.1"
_READY = 120.0  # seconds; only ever waited for in full by a program that does not come up
_GRACE = 10.0
_TICK = 0.05
_LAST_LINES = 15


def free_port() -> int:
    """A TCP port of the loopback address that nothing listens on now, nor will unless it is asked to."""
    return free_ports(1)[0]


def accepts(port: int) -> bool:
    """Whether something listens at this port of the loopback address."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1.0):
            return True
    except OSError:
        return False


@contextmanager
def temporary_folder(what: str) -> Iterator[Path]:
    """A folder that is gone afterwards, whatever programs still write into it."""
    folder = Path(tempfile.mkdtemp(prefix=f"streamsapp-test-{what}-"))
    try:
        with logs_of(folder):
            yield folder
    finally:
        deadline = time.monotonic() + _GRACE
        while folder.exists() and time.monotonic() < deadline:
            # A program that is being killed may write a last file into a folder that was just emptied.
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(
    command: Sequence[str | Path], folder: Path, ready: Callable[[], bool], name: str = ""
) -> Iterator[TiedProcess]:
    """A program that runs inside the block and answers from its beginning; its output goes to `folder`/NAME.log.

    Raises EnvironmentException with the last lines of that file when it ends early or does not get ready.
    """
    name = name or Path(command[0]).name
    log = folder / f"{name}.log"
    process = TiedProcess(command, log, folder)
    try:
        _wait(process, ready, name, log)
        yield process
    finally:
        process.stop(_GRACE)


def _wait(process: TiedProcess, ready: Callable[[], bool], name: str, log: Path) -> None:
    deadline = time.monotonic() + _READY
    while not ready():
        if process.wait(_TICK):
            raise EnvironmentException(f"{name} ended with {process.exit_code}. {_last_words(log)}")
        if time.monotonic() > deadline:
            raise EnvironmentException(f"{name} was not ready within {_READY:g} s. {_last_words(log)}")


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
    return "Its last lines:\n" + "\n".join(lines)
