"""A child process of the benchmark: ended by its own id, gone with the harness, last words in every error."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from streams_runtime.jvm.child import TiedProcess

STOP_TIMEOUT_S = 60.0
LAST_LINES = 25


class ChildFailedError(Exception):
    """A measured process ended by itself, or ended wrongly; the message has the end of its output."""


class Child:
    """One process, started at once. Use it in `with`: leaving kills what is still running."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        folder.mkdir(parents=True, exist_ok=True)
        self.output = folder / f"{name}.log"
        self.started_at = time.time()
        self._process = TiedProcess(command, self.output, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._process.kill()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def require_alive(self) -> None:
        """Raise ChildFailedError when the process has ended."""
        code = self._process.exit_code
        if code is not None:
            raise self._failed(f"ended with exit code {code} while it was needed")

    def wait(self, limit_s: float) -> list[str]:
        """Wait for exit code 0 and return the lines of its output.

        Raises ChildFailedError for another code, or when it still runs after `limit_s`.
        """
        if not self._process.wait(limit_s):
            raise self._failed(f"did not end in {limit_s:.0f} s")
        if self._process.exit_code != 0:
            raise self._failed(f"ended with exit code {self._process.exit_code}")
        return self._lines()

    def stop(self) -> None:
        """Ask it to end (SIGTERM) and require exit code 0. Raises ChildFailedError otherwise."""
        if not self._process.stop(STOP_TIMEOUT_S):
            raise self._failed(f"did not end {STOP_TIMEOUT_S:.0f} s after SIGTERM")
        self.wait(0)

    def _lines(self) -> list[str]:
        return self.output.read_text(errors="replace").splitlines()

    def _failed(self, how: str) -> ChildFailedError:
        last_words = "\n".join(self._lines()[-LAST_LINES:])
        return ChildFailedError(f"{self.name} {how}. Its last lines, of {self.output}:\n{last_words}")
