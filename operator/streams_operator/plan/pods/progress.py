"""How long an instance on its way to RUNNING and restored has not got nearer, and whether that is too long.

Kubernetes' Deployment has the same idea in `progressDeadlineSeconds`. Here restoration counts as progress, since it may
rightly take hours: each round that finds fewer records left than any round before it begins the wait anew.
"""

from __future__ import annotations

from streams_operator.model import PodState
from streams_operator.plan.pods.standing import Standing, serving
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_operator.plan.status.past import PastInstance, Wait

EXCEEDED = "ProgressDeadlineExceeded"
"""Reason of Progressing, of Degraded and of the event; Deployment's own word."""

_NOT_ON_ITS_WAY = (Standing.ERROR, Standing.FAILING, Standing.LOST_IN_ERROR, Standing.STUCK)


def waited(
    context: ReconcileContext, past: PastInstance | None, standing: Standing, pod: PodState | None
) -> Wait | None:
    """The wait of an instance as it stands now; None: it has arrived, or is not on its way.

    A crash does not end it: a pod that is made again and again does not get nearer.
    """
    nobody_waits = context.application is None or context.suspended or context.deleted_at is not None
    if nobody_waits or standing in _NOT_ON_ITS_WAY or (pod is not None and serving(pod)):
        return None
    wait = (past.wait if past is not None else None) or Wait(context.now)
    left = _left(context, pod)
    if left is None:
        return wait
    if wait.least is not None and left < wait.least:
        return Wait(context.now, left)
    # The same pod that has more left than in the last round was given more to restore: that is measured from here on.
    grown = past is not None and past.records_left is not None and left > past.records_left
    return Wait(wait.since, left if wait.least is None or grown else wait.least)


def due_at(context: ReconcileContext, wait: Wait | None) -> float | None:
    """When the wait is too long; None: there is no wait."""
    if wait is None or context.application is None:
        return None
    return wait.since + context.application.spec.progress_deadline.total_seconds()


def overdue(context: ReconcileContext, wait: Wait | None) -> bool:
    """Whether it is too long already."""
    due = due_at(context, wait)
    return due is not None and due <= context.now


def _left(context: ReconcileContext, pod: PodState | None) -> int | None:
    """The records that the pod has to restore; None: it restores none, or has not said."""
    if pod is None or pod.restored or pod.state is None:
        return None
    account = context.observed.accounts.get(pod.name)
    return (account.records_left if account is not None else pod.records_left) or None
