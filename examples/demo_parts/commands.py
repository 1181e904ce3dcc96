"""The public commands as child processes: one that is followed line by line, and ones that are waited for."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

STREAMSAPP = str(Path(sys.executable).with_name("streamsapp"))
STOP_SECONDS = 120.0

Event = dict[str, Any]


class DemoFailed(Exception):
    """The demonstration can't go on, or has found something wrong; the message says what."""


class Following:
    """A `streamsapp` command that prints one JSON object a line. It is stopped in order at the end of `with`."""

    def __init__(self, *arguments: str, log: Path) -> None:
        self.name = f"streamsapp {arguments[0]}"
        self.events: list[Event] = []
        self._log = log
        self._lines: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        with log.open("wb") as errors:
            # A session of its own: Ctrl-C reaches this program only, which stops the command in order.
            self._process = subprocess.Popen(
                [STREAMSAPP, *arguments, "--output", "json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        """The command's process id."""
        return self._process.pid

    @property
    def instances(self) -> dict[str, Event]:
        """The instances by name, as the last event that tells of them has them."""
        told: list[Event] = next((event["instances"] for event in reversed(self.events) if "instances" in event), [])
        return {each["name"]: each for each in told}

    def wait_for(self, what: str, wanted: Callable[[Event], bool], seconds: float) -> Event:
        """The next event that is `wanted`.

        Raises DemoFailed when the command ends, or `seconds` pass, before it comes.
        """
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                event = self._lines.get(timeout=left)
            except queue.Empty:
                break
            if event is None:
                raise DemoFailed(f"{self.name} ended while the demonstration waited for {what}: {self._last_words()}")
            self.events.append(event)
            if wanted(event):
                return event
        raise DemoFailed(f"{self.name}: no {what} within {seconds:.0f} s. {self._last_words()}")

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(STOP_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def _last_words(self) -> str:
        said = [event["text"] for event in self.events if event.get("text")]
        return " / ".join([*said[-3:], *self._log.read_text(errors="replace").splitlines()[-3:]])


def ask(*arguments: str, seconds: float = 300.0) -> Iterator[Event]:
    """Run a `streamsapp` command to its end and give the JSON objects that it printed.

    Raises DemoFailed with what it said when it fails.
    """
    done = subprocess.run(
        [STREAMSAPP, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
    )
    if done.returncode != 0:
        raise DemoFailed(f"streamsapp {' '.join(arguments)} failed: {done.stderr.decode(errors='replace').strip()}")
    for line in done.stdout.splitlines():
        yield json.loads(line)
