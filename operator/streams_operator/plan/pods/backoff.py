"""How long a crashed pod stays down: longer each time, and as at first after it has run for a while."""

from __future__ import annotations

from streams_operator.model import PodState
from streams_operator.plan.status.past import Account, Crash

FIRST = 10.0
"""Seconds after the first crash; twice as long after each further one."""
LONGEST = 300.0
"""Seconds: a fault that has gone is found out within five minutes."""
FORGOTTEN_AFTER = 600.0
"""Seconds of uptime after which earlier crashes do not count; twice LONGEST, so that a slow loop is still a loop."""
BETWEEN_ENDS = 10.0
"""Seconds at least between two pods of one ordinal that end in order unasked."""


def delay(restarts: int) -> float:
    """Seconds to wait after a crash, with `restarts` crashes in a row before it."""
    # The exponent is bounded because 2.0**1024 is no float.
    return min(FIRST * 2.0 ** min(restarts, 30), LONGEST)


def after_crash(before: Account, pod: PodState, now: float) -> Account:
    """The account with this pod's crash in it, once: a pod that it has already is not counted again."""
    if before.last is not None and before.last.uid == pod.uid:
        return before
    at = pod.ended_at if pod.ended_at is not None else now
    uptime = at - pod.started_at if pod.started_at is not None else 0.0
    restarts = 0 if uptime >= FORGOTTEN_AFTER else before.restarts
    return Account(restarts + 1, Crash(pod.uid, at, _reason(pod)), at + delay(restarts))


def while_running(before: Account, pod: PodState, now: float) -> Account:
    """The account of a pod that runs: nothing to wait for, and after a while nothing in a row."""
    forgotten = pod.started_at is not None and now - pod.started_at >= FORGOTTEN_AFTER
    return Account(0 if forgotten else before.restarts, before.last)


def forgotten_at(account: Account, pod: PodState) -> float | None:
    """When `while_running` will forget; None: there is nothing to forget."""
    return pod.started_at + FORGOTTEN_AFTER if account.restarts and pod.started_at is not None else None


def _reason(pod: PodState) -> str:
    code = "without an exit code" if pod.exit_code is None else f"exit code {pod.exit_code}"
    return f"{pod.reason}, {code}" if pod.reason else code
