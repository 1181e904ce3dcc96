"""A JVM as a child process that can't outlive this one, whichever thread starts it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from streams_runtime.errors import EnvironmentException

_TIE = Path(__file__).with_name("tie.py")


class TiedProcess:
    """A running command; on Linux the kernel kills it when this process dies, even by SIGKILL.

    The kernel watches the *thread* that started a child, so each child has a thread of its own that starts it
    and then waits for it. The child is its own session: Ctrl-C in a terminal reaches this process only, which
    stops the child in order. Safe to use from several threads.
    """

    def __init__(self, command: Sequence[str | Path], output: Path, cwd: Path) -> None:
        """Start the command; what it prints goes to the file `output`, which is emptied first.

        Raises EnvironmentException when it can't be started.
        """
        self._command = [sys.executable, "-I", "-S", str(_TIE), str(os.getpid()), *map(str, command)]
        self._ended = threading.Event()
        started: Future[subprocess.Popen[bytes]] = Future()
        threading.Thread(target=self._own, args=(started, output, cwd), name="tied-process", daemon=True).start()
        try:
            self._process = started.result()
        except OSError as failure:
            raise EnvironmentException(
                f"{command[0]} can't be started: {failure}. Correct that and try again"
            ) from failure
        except BaseException:
            # Interrupted between the order and the start: the process must not stay behind unseen.
            started.add_done_callback(_kill_started)
            raise

    @property
    def pid(self) -> int:
        """The process id of the command itself."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""
        return self._process.returncode if self._ended.is_set() else None

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it ended within `timeout` seconds."""
        return self._ended.wait(timeout)

    def stop(self, grace: float) -> bool:
        """SIGTERM, and SIGKILL after `grace` seconds. True when it ended by itself; may be called twice."""
        if not self._ended.is_set():
            self._process.terminate()
        in_order = self._ended.wait(grace)
        if not in_order:
            self._process.kill()
            self._ended.wait()
        return in_order

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if not self._ended.is_set():
            self._process.kill()
        self._ended.wait()

    def _own(self, started: Future[subprocess.Popen[bytes]], output: Path, cwd: Path) -> None:
        try:
            with output.open("wb") as out:
                process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    start_new_session=True,
                )
        except OSError as failure:
            started.set_exception(failure)
            return
        started.set_result(process)
        process.wait()
        self._ended.set()


def _kill_started(started: Future[subprocess.Popen[bytes]]) -> None:
    if started.exception() is None:
        started.result().kill()
