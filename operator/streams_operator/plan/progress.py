"""How long an instance on its way to RUNNING and restored has not got nearer, and whether that is too long.

Kubernetes' Deployment has the same idea in `progressDeadlineSeconds`. Here restoration counts as progress, since it may
rightly take hours: each look that finds fewer records left than any look before it begins the wait anew.
"""

from __future__ import annotations

from streams_operator.model import PodSeen
from streams_operator.plan.case import Case
from streams_operator.plan.past import PastInstance, Wait
from streams_operator.plan.standing import Standing, serving

EXCEEDED = "ProgressDeadlineExceeded"
"""Reason of Progressing, of Degraded and of the event; Deployment's own word."""

_NOT_ON_ITS_WAY = (Standing.ERROR, Standing.FAILING, Standing.LOST_IN_ERROR, Standing.STUCK)


def waited(case: Case, past: PastInstance | None, standing: Standing, pod: PodSeen | None) -> Wait | None:
    """The wait of an instance as it stands now; None: it has arrived, or is not on its way.

    A crash does not end it: a pod that is made again and again does not get nearer.
    """
    nobody_waits = case.application is None or case.suspended or case.deleted_at is not None
    if nobody_waits or standing in _NOT_ON_ITS_WAY or (pod is not None and serving(pod)):
        return None
    wait = (past.wait if past is not None else None) or Wait(case.now)
    left = _left(case, pod)
    if left is None:
        return wait
    if wait.least is not None and left < wait.least:
        return Wait(case.now, left)
    # The same pod that has more left than at the last look was given more to restore: that is measured from here on.
    grown = past is not None and past.records_left is not None and left > past.records_left
    return Wait(wait.since, left if wait.least is None or grown else wait.least)


def due_at(case: Case, wait: Wait | None) -> float | None:
    """When the wait is too long; None: there is no wait."""
    if wait is None or case.application is None:
        return None
    return wait.since + case.application.spec.progress_deadline.total_seconds()


def overdue(case: Case, wait: Wait | None) -> bool:
    """Whether it is too long already."""
    due = due_at(case, wait)
    return due is not None and due <= case.now


def _left(case: Case, pod: PodSeen | None) -> int | None:
    """The records that the pod has to restore; None: it restores none, or has not said."""
    if pod is None or pod.restored or pod.state is None:
        return None
    account = case.observed.accounts.get(pod.name)
    return (account.records_left if account is not None else pod.records_left) or None
