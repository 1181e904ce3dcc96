"""The thread that keeps the conditions of a pod as its client is. Nobody waits for it, except for the last word."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from streams_runtime.kubernetes.pace import Reported, due_at
from streams_runtime.kubernetes.pod_conditions import Condition, Transitions
from streams_runtime.kubernetes.pod_status_api import Answer, Result

LAST_WORD_SECONDS = 3.0
"""How long a process waits for its last conditions to be accepted. Exit code and termination message say it too."""
_LOOK = 1.0  # seconds between two looks at what no listener tells of: records left, tasks
_REQUEST = 2.0  # seconds for a step of a request; below the last word's, which may have to wait for one under way
_LAST_RETRY = 0.1  # seconds between two tries of the last word

_LOGGER = logging.getLogger("streams_runtime.kubernetes")


class StatusApi(Protocol):
    """What takes the conditions (kubernetes.pod_status_api.PodStatusApi)."""

    def patch(self, conditions: Sequence[Mapping[str, Any]], timeout: float) -> Result: ...

    def close(self) -> None: ...


class Reporter:
    """Sends what `look` gives whenever it has changed, by the rules of `pace`.

    `look` is called on the reporter's thread about once a second and after every `wake`; it must not block.
    """

    def __init__(
        self,
        api: StatusApi,
        look: Callable[[], tuple[Condition, ...]],
        clock: Callable[[], float] = time.monotonic,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._api = api
        self._look = look
        self._clock = clock
        self._spread = spread
        self._transitions = Transitions()
        self._reported = Reported()
        self._complaint = ""
        self._changed = threading.Condition()
        self._woken = False
        self._owed: deque[tuple[Condition, ...]] = deque()
        self._last_at: float | None = None  # when the last word may be tried no longer
        self._thread = threading.Thread(target=self._run, name="pod-conditions", daemon=True)

    def start(self) -> None:
        """Start to report; returns at once."""
        self._thread.start()

    def wake(self) -> None:
        """Something has changed; returns at once, from any thread."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def owe(self, conditions: tuple[Condition, ...]) -> None:
        """Send these before anything newer, however soon the client is different; returns at once, from any thread."""
        self._owed.append(conditions)
        self.wake()

    def finish(self, seconds: float = LAST_WORD_SECONDS) -> bool:
        """Send what `look` gives now, and stop. False when that was not accepted within `seconds`. Call it once."""
        with self._changed:
            self._last_at = self._clock() + seconds
            self._woken = True
            self._changed.notify_all()
        self._thread.join(seconds)
        done = not self._thread.is_alive() and self._reported.conditions == self._look()
        if not done:
            _LOGGER.warning(
                "the pod's last conditions were not accepted within %g s; its exit code and termination message"
                " say the same. %s",
                seconds,
                self._complaint,
            )
        return done

    def _run(self) -> None:
        try:
            while not self._turn():
                pass
        except Exception:  # a defect; it must not go by unseen, since the operator would see old conditions
            _LOGGER.exception("the pod's conditions are reported no longer")
        finally:
            self._api.close()

    def _turn(self) -> bool:
        """Send if it is time, then wait for the next time; True when the last word has been given or given up."""
        now, last_at = self._clock(), self._last_at
        owed = self._owed[0] if self._owed else None
        wanted = self._look() if owed is None else owed
        due = due_at(wanted, self._reported, owed is not None)
        if owed is not None and due is None:
            self._owed.popleft()
            return False
        if last_at is not None:
            if due is None or now >= last_at:
                return True
            self._send(wanted, min(_REQUEST, last_at - now))
            if self._reported.conditions != wanted:
                self._wait(_LAST_RETRY)
            return False
        if due is not None and due <= now:
            self._send(wanted, _REQUEST)
        else:
            self._wait(_LOOK if due is None else min(due - now, _LOOK))
        return False

    def _wait(self, seconds: float) -> None:
        with self._changed:
            if not self._woken:
                self._changed.wait(seconds)
            self._woken = False

    def _send(self, wanted: tuple[Condition, ...], timeout: float) -> None:
        result = self._api.patch(self._transitions.status(wanted, datetime.now(UTC)), timeout)
        now = self._clock()
        if result.answer is Answer.ACCEPTED:
            self._reported = self._reported.accepted(wanted, now)
            if self._complaint:
                _LOGGER.info("the pod's conditions are reported again")
            self._complaint = ""
        elif result.answer is Answer.LATER:
            self._reported = self._reported.failed(now, self._spread(), result.retry_after)
            self._complain("the pod's conditions can't be reported now, and are tried again: ", result)
        else:
            self._reported = self._reported.refused(now)
            self._complain("the pod's conditions can't be reported: ", result)

    def _complain(self, what: str, result: Result) -> None:
        """Each outage once, not each try; a refusal is always heard, also when an outage came before it."""
        if what not in self._complaint:
            _LOGGER.warning("%s%s", what, result.text)
            self._complaint = what + result.text
