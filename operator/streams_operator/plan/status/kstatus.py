"""The conditions that kstatus reads: Flux, Helm 4 and kpt wait by them.

Source: sigs.k8s.io/cli-utils/pkg/kstatus. A resource is InProgress with `Reconciling`, Failed with `Stalled`, and with
neither of them Current where `Ready` is True. Both are there only while they are True, so a settled application has
neither, and at most one of them is there.
"""

from __future__ import annotations

from streams_operator.plan.decision import Decision, Phase
from streams_operator.plan.pods.pausing import lagging
from streams_operator.plan.status.application_state import state
from streams_operator.plan.status.message_texts import clipped, listed

Said = tuple[str, str, str]
"""Status, reason and message of a condition."""
RECONCILING, STALLED = "Reconciling", "Stalled"
_LENGTH = 1_000  # bytes; the whole message stands in Progressing or Degraded


def abnormal(decision: Decision, progressing: Said, degraded: Said, beside: str) -> tuple[str, str, str, str] | None:
    """Type, status, reason and message of the one that is there; None: what the resource asks for is done.

    `beside` is the reason of Progressing that is no part of it: another default image is not in the resource.
    """
    if state(decision) == "SUSPENDED" and not decision.reset.under_way and not decision.reset.refused:
        return None
    if progressing[0] == "True" and progressing[1] != beside:
        return (RECONCILING, "True", progressing[1], clipped(progressing[2], _LENGTH))
    if degraded[0] == "True":
        return (STALLED, "True", degraded[1], clipped(degraded[2], _LENGTH))
    if decision.phase is Phase.HOLD and _held_back(decision):
        return (RECONCILING, "True", progressing[1], clipped(progressing[2], _LENGTH))
    behind = lagging(decision.context) if decision.runs else ()
    if behind:
        reason = "Pausing" if decision.context.paused else "Resuming"
        return (RECONCILING, "True", reason, f"spec.paused has not reached {listed([pod.name for pod in behind])}")
    return None


def _held_back(decision: Decision) -> bool:
    """Whether the annotation that keeps the operator from changes keeps it from one that the resource asks for."""
    context = decision.context
    wanted = 0 if context.suspended else context.replicas
    return len(context.own) != wanted or any(each.outdated for each in decision.instances)
