"""SIGINT and SIGTERM of a local run: the first asks it to stop in order, a second one to stop at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupted(BaseException):
    """Raised by a signal inside of `StopSignals.raising`; leaves through the `with` blocks."""


class StopSignals:
    """Counts the signals that ask to stop; in `with`, on the main thread. Handlers only set plain attributes."""

    def __init__(self) -> None:
        self.first_signal: signal.Signals | None = None
        """The signal that came first."""
        self.hurry = False
        """Whether another one followed."""
        self._raising = False
        self._before: dict[signal.Signals, Any] = {}

    @contextmanager
    def raising(self) -> Iterator[None]:
        """While this goes on, a signal raises Interrupted: for steps that can be broken off anywhere.

        One that has come before raises it at once.
        """
        if self.first_signal is not None:
            raise Interrupted
        self._raising = True
        try:
            yield
        finally:
            self._raising = False

    def __enter__(self) -> Self:
        for each in (signal.SIGINT, signal.SIGTERM):
            self._before[each] = signal.signal(each, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.hurry = self.first_signal is not None
        self.first_signal = self.first_signal or signal.Signals(number)
        if self._raising:
            self._raising = False
            raise Interrupted
