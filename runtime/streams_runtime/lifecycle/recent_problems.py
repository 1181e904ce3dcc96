"""The warnings and errors that a client has logged last: what, where, how often, and the remedy."""

from __future__ import annotations

import logging
import re
import threading
import weakref
from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any, Final

from streams_runtime.errors import message_of
from streams_runtime.lifecycle.remedies import remedy_of

LOGGER: Final = "streams_runtime"
KEPT: Final = 50
"""Different problems; the one that was met the longest ago goes first."""
_TEXT: Final = 2000  # characters of a message
_THREAD: Final = re.compile(r"(?P<instance>.+)-(?:StreamThread|GlobalStreamThread|standbys|close)\b.*")


@dataclass(slots=True)
class RecentProblem:
    """`at` is when it was met last, in seconds since 1970, `where` the thread. `kind`: the exception's class."""

    at: float
    level: str
    where: str
    message: str
    kind: str | None
    remedy: str | None
    times: int = 1


class RecentProblems:
    """Follows the log of the whole process and keeps the problems of one client. Safe to use from any thread.

    A problem that comes again is counted, and shown with its last message.
    """

    def __init__(self, instance: str) -> None:
        """`instance`: what threads of other clients in this process say is left out."""
        self._instance = instance
        self._lock = threading.Lock()
        self._problems: OrderedDict[tuple[str, ...], RecentProblem] = OrderedDict()
        _HANDLER.followed_by(self)

    def rows(self) -> list[dict[str, Any]]:
        """The newest first."""
        with self._lock:
            return [_row(problem) for problem in reversed(self._problems.values())]

    def take(self, record: logging.LogRecord) -> None:
        """Note a line of the log, unless another client's thread wrote it."""
        thread = record.threadName or ""
        found = _THREAD.fullmatch(thread)
        if found is not None and found["instance"] != self._instance:
            return
        args = record.args if isinstance(record.args, tuple) else ()
        error = next((each for each in args if isinstance(each, BaseException)), None)
        kind, remedy = (None, None) if error is None else (type(error).__name__, remedy_of(error))
        text = record.getMessage()
        message = (text if error is None else text.replace(str(error), message_of(error), 1))[:_TEXT]
        level = "error" if record.levelno >= logging.ERROR else "warning"
        key = (thread, record.name, str(record.msg), kind or "", *(each for each in args if isinstance(each, str)))
        with self._lock:
            known = self._problems.pop(key, None)
            times = 1 if known is None else known.times + 1
            self._problems[key] = RecentProblem(record.created, level, thread, message, kind, remedy, times)
            if len(self._problems) > KEPT:
                self._problems.popitem(last=False)


def _row(problem: RecentProblem) -> dict[str, Any]:
    row = asdict(problem)
    return {("class" if name == "kind" else name): value for name, value in row.items()}


class _Handler(logging.Handler):
    """One for the process, whatever number of clients comes and goes: each is followed as long as it is there."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._followers: weakref.WeakSet[RecentProblems] = weakref.WeakSet()

    def followed_by(self, problems: RecentProblems) -> None:
        self.acquire()
        try:
            self._followers.add(problems)
        finally:
            self.release()
        logging.getLogger(LOGGER).addHandler(self)  # once: a logger takes the same handler no second time

    def emit(self, record: logging.LogRecord) -> None:
        try:
            for each in tuple(self._followers):
                each.take(record)
        except Exception:
            self.handleError(record)


_HANDLER: Final = _Handler()
