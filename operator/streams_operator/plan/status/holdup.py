"""What keeps an instance from being RUNNING and restored, in words that name its cause."""

from __future__ import annotations

from streams_operator import names
from streams_operator.model import PodState
from streams_operator.plan.pods.instances import Instance
from streams_operator.plan.pods.standing import Standing
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_operator.plan.status.message_texts import clipped
from streams_operator.plan.status.times import text_not_before
from streams_runtime.states import ClientState

_LENGTH = 400  # bytes of what Kubernetes says


def holdup(context: ReconcileContext, instance: Instance) -> str:
    """A few words for a list of instances."""
    pod = instance.pod
    if pod is None:
        return _no_pod(context, instance)
    match instance.standing:
        case Standing.NEW:
            return _not_started(context, instance, pod)
        case Standing.CRASHED:
            return _crashed(instance)
        case Standing.LIVE:
            return _runs(context, instance, pod)
        case Standing.CLOSING:
            return "closing"
        case _:
            return instance.state


def _runs(context: ReconcileContext, instance: Instance, pod: PodState) -> str:
    if pod.silent:
        return f"does not answer the operator; node {pod.node or 'unknown'}"
    if not pod.restored:
        left = context.observed.accounts.get(pod.name)
        return f"{instance.state}, {left.records_left if left is not None else pod.records_left} records left"
    if instance.state != ClientState.RUNNING:
        return instance.state
    if not pod.spark_ready:
        return "RUNNING, and Spark is still starting"
    if not pod.ready:
        return f"RUNNING, but its pod is not ready; node {pod.node or 'unknown'}"
    return "RUNNING; the operator waits for its answer" if pod.doubted else instance.state


def _no_pod(context: ReconcileContext, instance: Instance) -> str:
    until = instance.account.until
    if (refusal := context.observed.refusals.get(instance.name)) is not None:
        return clipped(f"its pod can't be made: {refusal}", _LENGTH)
    if until is not None and until > context.now:
        return f"{_crashed(instance)}; made again at {text_not_before(until)}"
    return "its pod is to be made"


def _not_started(context: ReconcileContext, instance: Instance, pod: PodState) -> str:
    if not pod.reason:
        return str(instance.state)
    text = clipped(f"{pod.reason}: {pod.message}" if pod.message else pod.reason, _LENGTH)
    if (secret := _credentials(context)) is not None and f'secret "{secret}" not found' in pod.message:
        return f"{text}. Create the Secret {secret}, which spec.state.snapshots.secretRef names, or correct the name"
    stored = context.application is not None and context.application.spec.state.storage is not None
    if pod.reason == "Unschedulable" and stored and "volume" in pod.message.lower():
        claim = names.claim(context.identity.name, instance.ordinal)
        text += (
            f". Its volume may be bound to a node that is lost: if that does not come back, delete the"
            f" PersistentVolumeClaim {claim}, and the stores are restored from Kafka"
        )
    return text


def _credentials(context: ReconcileContext) -> str | None:
    snapshots = context.application.spec.state.snapshots if context.application is not None else None
    return snapshots.secret_ref.name if snapshots is not None and snapshots.secret_ref is not None else None


def _crashed(instance: Instance) -> str:
    last = instance.account.last
    reason = last.reason if last is not None else "unknown"
    return f"crashed ({reason}), {instance.account.restarts} times in a row"
