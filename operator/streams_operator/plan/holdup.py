"""What keeps an instance from being RUNNING and restored, in words that name the thing to look at."""

from __future__ import annotations

from streams_operator import names
from streams_operator.model import PodSeen
from streams_operator.plan.case import Case
from streams_operator.plan.instances import Instance
from streams_operator.plan.standing import Standing
from streams_operator.plan.times import text_not_before
from streams_operator.plan.words import clipped
from streams_runtime.states import ClientState

_LENGTH = 400  # bytes of what Kubernetes says


def holdup(case: Case, instance: Instance) -> str:
    """A few words for a list of instances."""
    pod = instance.pod
    if pod is None:
        return _no_pod(case, instance)
    match instance.standing:
        case Standing.NEW:
            return _not_started(case, instance, pod)
        case Standing.CRASHED:
            return _crashed(instance)
        case Standing.LIVE:
            return _runs(case, instance, pod)
        case Standing.CLOSING:
            return "closing"
        case _:
            return instance.state


def _runs(case: Case, instance: Instance, pod: PodSeen) -> str:
    if pod.silent:
        return f"does not answer the operator; node {pod.node or 'unknown'}"
    if not pod.restored:
        left = case.observed.accounts.get(pod.name)
        return f"{instance.state}, {left.records_left if left is not None else pod.records_left} records left"
    if instance.state != ClientState.RUNNING:
        return instance.state
    if not pod.ready:
        return f"RUNNING, but its pod is not ready; node {pod.node or 'unknown'}"
    return "RUNNING; the operator waits for its answer" if pod.doubted else instance.state


def _no_pod(case: Case, instance: Instance) -> str:
    until = instance.account.until
    if (refusal := case.observed.refusals.get(instance.name)) is not None:
        return clipped(f"its pod can't be made: {refusal}", _LENGTH)
    if until is not None and until > case.now:
        return f"{_crashed(instance)}; made again at {text_not_before(until)}"
    return "its pod is to be made"


def _not_started(case: Case, instance: Instance, pod: PodSeen) -> str:
    if not pod.reason:
        return str(instance.state)
    text = clipped(f"{pod.reason}: {pod.message}" if pod.message else pod.reason, _LENGTH)
    stored = case.application is not None and case.application.spec.state.storage is not None
    if pod.reason == "Unschedulable" and stored and "volume" in pod.message.lower():
        claim = names.claim(case.identity.name, instance.ordinal)
        text += (
            f". Its volume may be bound to a node that is lost: if that does not come back, delete the"
            f" PersistentVolumeClaim {claim}, and the stores are restored from Kafka"
        )
    return text


def _crashed(instance: Instance) -> str:
    last = instance.account.last
    reason = last.reason if last is not None else "unknown"
    return f"crashed ({reason}), {instance.account.restarts} times in a row"
