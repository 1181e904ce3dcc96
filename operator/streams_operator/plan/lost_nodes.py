"""Pods that are deleted and stay: their node does not confirm that they have ended."""

from __future__ import annotations

from collections.abc import Iterator

from streams_operator.plan.case import Case
from streams_operator.plan.moves import Leaving
from streams_operator.plan.standing import STUCK_AFTER, stuck

STUCK_TERMINATING = "PodStuckTerminating"
"""Reason of Degraded and of the event."""


def forced_out(case: Case) -> tuple[Leaving, ...]:
    """The pods that spec.nodeLoss gives up now: they are deleted without their node.

    A client that runs on there all the same is fenced by its successor: both have the same group.instance.id, and the
    same transactional ids.
    """
    after = _force_after(case)
    if after is None:
        return ()
    why = "its node has not confirmed its end; it is deleted by force, as spec.nodeLoss says"
    return tuple(
        Leaving(pod, why, force=True)
        for pod in case.own
        if stuck(pod, case.now) and not pod.forced and case.now >= (pod.gone_by or 0.0) + after
    )


def times(case: Case) -> Iterator[float]:
    """When a pod that is being deleted will count as stuck, and when it will be given up."""
    after = _force_after(case)
    for pod in case.own:
        if pod.deleting and pod.gone_by is not None:
            dues = (pod.gone_by + STUCK_AFTER, *(() if after is None or pod.forced else (pod.gone_by + after,)))
            yield from (due for due in dues if due > case.now)


def _force_after(case: Case) -> float | None:
    after = case.application.spec.node_loss.force_delete_after if case.application is not None else None
    return None if after is None else max(after.total_seconds(), STUCK_AFTER)
