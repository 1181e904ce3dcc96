"""Whether an instance is alive: its threads' loops turn, or have a reason not to. What `/healthz` and `/readyz` answer.

Kubernetes kills a pod that is not alive, and everything that it had in work is done again. So only a loop that
nothing excuses counts as stuck: a thread that waits for brokers, or hands a batch's output over, notes a turn at every
poll; restoration has a thread of its own, and Spark may compute for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from streams_runtime.states import ThreadState

TURN_SECONDS = 300.0
"""A loop without a turn for so long is stuck. The longest wait for an answer of the brokers is 30 s, with retries."""
READY_SECONDS = 60.0
"""The same for readiness, which costs nothing but the trust of those who ask: a rolling change waits."""
WORK_SECONDS = 900.0
"""The same while Spark computes a batch or stores are restored: a batch of 500,000 records takes seconds, one on a
starved node with a slow expression minutes."""

_CHECKED_STATES = frozenset(ThreadState) - {ThreadState.CREATED, ThreadState.DEAD}


@dataclass(frozen=True, slots=True)
class Pulse:
    """The state of a thread's loop. `last_turn` is in seconds of a monotonic clock."""

    thread: str
    state: ThreadState
    last_turn: float
    computing: bool = False
    restoring: bool = False


@dataclass(frozen=True, slots=True)
class Stuck:
    """A thread whose loop has not turned for `seconds`, though `allowed` are the most that it may take."""

    thread: str
    state: ThreadState
    seconds: float
    allowed: float


def stuck_threads(pulses: Iterable[Pulse], now: float, turn_seconds: float | None = None) -> tuple[Stuck, ...]:
    """The threads that count as stuck at `now`, on the same clock. None: the instance is alive.

    `turn_seconds`: what a loop may take that nothing excuses; None: TURN_SECONDS.
    """
    found = []
    turn_seconds = TURN_SECONDS if turn_seconds is None else turn_seconds
    for pulse in pulses:
        allowed = WORK_SECONDS if pulse.computing or pulse.restoring else turn_seconds
        seconds = now - pulse.last_turn
        if pulse.state in _CHECKED_STATES and seconds > allowed:
            found.append(Stuck(pulse.thread, pulse.state, seconds, allowed))
    return tuple(found)


def health_document(stuck: Iterable[Stuck], now: float) -> Mapping[str, Any]:
    """The body of `/healthz`; `now` is in seconds since 1970."""
    threads = [
        {
            "name": each.thread,
            "state": str(each.state),
            "since": datetime.fromtimestamp(now - each.seconds, UTC).isoformat(timespec="seconds"),
            "seconds": round(each.seconds),
            "allowed": round(each.allowed),
        }
        for each in stuck
    ]
    return {"status": "stuck", "threads": threads} if threads else {"status": "ok"}
