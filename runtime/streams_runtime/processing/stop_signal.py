"""The sign to end of a stream thread, which is its pulse too."""

from __future__ import annotations

import threading
import time


class StopSign(threading.Event):
    """An event that knows when it was last looked at.

    Every turn of a thread's loop and every wait for brokers looks at it. So the time of the last look tells whether the
    thread goes on. Only that thread looks; any thread may set it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.looked_at = time.monotonic()

    def is_set(self) -> bool:
        """Whether the thread has to end."""
        self.looked_at = time.monotonic()
        return super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the sign; True when it is set."""
        self.looked_at = time.monotonic()
        return super().wait(timeout)
