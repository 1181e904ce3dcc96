"""What a pod has come to, in the one word that decisions are about."""

from __future__ import annotations

import enum

from streams_operator.model import PodState
from streams_runtime.states import EXIT_ERROR, EXIT_UNUSABLE, ClientState

STUCK_AFTER = 60.0
"""Seconds after the end of its grace period from which a pod that is still there counts as stuck: a kubelet under load
needs some."""
_FAILED = (ClientState.PENDING_ERROR, ClientState.ERROR)


class Standing(enum.Enum):
    """What there is of an ordinal."""

    ABSENT = "no pod, and one may be made"
    LOST_IN_ERROR = "no pod; the last one ended in ERROR, and nobody has said that another one may be made"
    NEW = "has not run yet"
    LIVE = "runs"
    FAILING = "runs and is on its way to ERROR"
    ERROR = "ended in ERROR, or could not use its application"
    CRASHED = "ended in any other way than the client's own"
    DONE = "ended in order, though nobody asked it to"
    CLOSING = "is being removed"
    STUCK = "was to be gone and is still there: its node does not confirm its end"


def ended(pod: PodState) -> bool:
    """Whether nothing of it runs any more."""
    return pod.exit_code is not None or pod.phase in ("Failed", "Succeeded")


def standing(pod: PodState, now: float) -> Standing:
    """The standing of a pod that is there."""
    if pod.deleting:
        return Standing.STUCK if stuck(pod, now) else Standing.CLOSING
    if in_error(pod):
        return Standing.ERROR
    if failing(pod):
        return Standing.FAILING
    if ended(pod):
        # A pod that was evicted may end in order; its node did not keep it, so it counts as lost.
        return Standing.DONE if pod.exit_code == 0 and pod.phase != "Failed" else Standing.CRASHED
    if doomed(pod) and pod.state is not None:
        return Standing.FAILING
    return Standing.NEW if pod.state is None and pod.started_at is None else Standing.LIVE


def stuck(pod: PodState, now: float) -> bool:
    """Whether it is being deleted and should have gone long ago."""
    return pod.deleting and pod.gone_by is not None and now >= pod.gone_by + STUCK_AFTER


def available(pod: PodState) -> bool:
    """Whether it is ready by Kubernetes' word, and by its own answers, and has Spark.

    A pod may be ready for queries before it has Spark. Without that it may yet end in ERROR, or, with executors that
    are away, process nothing for long.
    """
    return pod.ready and pod.spark_ready and not pod.deleting and not pod.silent


def serving(pod: PodState) -> bool:
    """Whether its client does its part: RUNNING, with all its state, in a pod that is ready.

    The client's own words are not enough: they stay as they are when its node is lost.
    """
    return available(pod) and not doomed(pod) and pod.state == ClientState.RUNNING and pod.restored and not ended(pod)


def failing(pod: PodState) -> bool:
    """Whether its client has met an error that nobody may restart it after."""
    return not pod.restartable or pod.state in _FAILED


def doomed(pod: PodState) -> bool:
    """Whether its client is on its way to ERROR: by its own failure, or since another one asked for the end of all."""
    return failing(pod) or pod.shutdown_signaled


def in_error(pod: PodState) -> bool:
    """Whether its client has ended in ERROR, however its container went."""
    if pod.state == ClientState.ERROR:
        return True
    return ended(pod) and (failing(pod) or pod.exit_code in (EXIT_ERROR, EXIT_UNUSABLE))
