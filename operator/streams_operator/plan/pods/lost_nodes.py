"""Pods that are deleted and stay: their node does not confirm that they have ended."""

from __future__ import annotations

from collections.abc import Iterator

from streams_operator.plan.pods.moves import Leaving
from streams_operator.plan.pods.standing import STUCK_AFTER, stuck
from streams_operator.plan.reconcile_context import ReconcileContext

STUCK_TERMINATING = "PodStuckTerminating"
"""Reason of Degraded and of the event."""


def forced_out(context: ReconcileContext) -> tuple[Leaving, ...]:
    """The pods that spec.nodeLoss gives up now: they are deleted without their node.

    A client that runs on there all the same is fenced by its successor: both have the same group.instance.id, and the
    same transactional ids.
    """
    after = _force_after(context)
    if after is None:
        return ()
    why = "its node has not confirmed its end; it is deleted by force, as spec.nodeLoss says"
    return tuple(
        Leaving(pod, why, force=True)
        for pod in context.own
        if stuck(pod, context.now) and not pod.forced and context.now >= (pod.gone_by or 0.0) + after
    )


def times(context: ReconcileContext) -> Iterator[float]:
    """When a pod that is being deleted will count as stuck, and when it will be given up."""
    after = _force_after(context)
    for pod in context.own:
        if pod.deleting and pod.gone_by is not None:
            dues = (pod.gone_by + STUCK_AFTER, *(() if after is None or pod.forced else (pod.gone_by + after,)))
            yield from (due for due in dues if due > context.now)


def _force_after(context: ReconcileContext) -> float | None:
    after = context.application.spec.node_loss.force_delete_after if context.application is not None else None
    return None if after is None else max(after.total_seconds(), STUCK_AFTER)
