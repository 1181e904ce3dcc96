"""Calls into librdkafka that may never come back, with a limit that holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_TICK = 0.2  # seconds between two looks at `give_up`


class OverdueError(Exception):
    """A call has not come back. It goes on, on its own thread, with all that it was given."""

    def __init__(self, came_back: threading.Event) -> None:
        """`came_back` is set when it does."""
        super().__init__()
        self.came_back = came_back


def bounded(call: Callable[[], T], seconds: float, give_up: Callable[[], bool] = lambda: False) -> T:
    """What `call` returns or raises, made on a thread of its own, which the interpreter's end does not wait for.

    librdkafka takes time limits, but some of its calls wait beyond them for an answer that was lost with a connection
    (its issues 5456 and 5511).

    Raises:
        OverdueError: `seconds` have passed, or `give_up`, asked a few times a second, said so. Whatever the call uses
            is not to be used, nor freed, by anybody else from then on.
    """
    done = threading.Event()
    returned: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(call())
        except BaseException as error:
            raised.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name=f"{threading.current_thread().name}-librdkafka", daemon=True).start()
    end = time.monotonic() + seconds
    while not done.wait(min(_TICK, max(end - time.monotonic(), 0))):
        if give_up() or time.monotonic() >= end:
            raise OverdueError(done)
    if raised:
        try:
            raise raised[0]
        finally:
            raised.clear()  # its trace holds this frame
    return returned[0]
