"""spec.paused: which pods get a signal to process nothing, or to go on (KIP-834), and which have not followed yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streams_operator.model import PodSignal, PodState
from streams_operator.names import ANNOTATION_PAUSED, PAUSED
from streams_operator.plan.pods.standing import ended
from streams_operator.plan.reconcile_context import ReconcileContext


def pause_signals(context: ReconcileContext) -> Iterator[PodSignal]:
    """Those of the pods that are there; others are made with the annotation."""
    text = PAUSED if context.paused else None
    for pod in context.own:
        if pod.pause_signaled != context.paused and not pod.deleting and not ended(pod):
            yield PodSignal(pod.name, pod.uid, ANNOTATION_PAUSED, text)


def lagging(context: ReconcileContext) -> Sequence[PodState]:
    """The pods that still process although they are to pause, or are still paused although they are to go on."""
    return [pod for pod in context.own if pod.paused != context.paused and not ended(pod)]
