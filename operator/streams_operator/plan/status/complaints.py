"""What is wrong with an application, in words that say what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streams_operator import names
from streams_operator.plan.decision import Decision, Phase
from streams_operator.plan.objects.claims import mismatch
from streams_operator.plan.pods.instances import Instance
from streams_operator.plan.pods.lost_nodes import STUCK_TERMINATING
from streams_operator.plan.pods.progress import EXCEEDED, overdue
from streams_operator.plan.pods.standing import Standing
from streams_operator.plan.status.holdup import holdup
from streams_operator.plan.status.message_texts import clipped, listed
from streams_operator.plan.status.suspending import late_resets
from streams_operator.plan.status.times import text_of
from streams_operator.plan.version.rollback import ROLLBACK_REFUSED, ROLLED_BACK, given_up, refusal, rolled_back_message
from streams_runtime.topology.changes.change import Change

TOPOLOGY_REFUSED = "TopologyChangeRefused"
"""Reason of Degraded, of Progressing, and of the event."""
TOPOLOGY_REMEDY = "spec.topology is as it was, or spec.topologyChange is allow"
RESET_REFUSED = "ResetRefused"
"""Reason of Degraded; the event of the reset has the same."""
REFUSALS = (TOPOLOGY_REFUSED, RESET_REFUSED)
"""Reasons that a change of the resource alone has brought about; each is given only where nothing worse is wrong."""

_SHOWN = 20  # pods, or changes, that are named one by one
_REFUSED_LENGTH = 8_000  # bytes; the remedy stands behind it


def complaints(decision: Decision) -> Iterator[tuple[str, str]]:
    """What is wrong, the worst first: (reason, text)."""
    context = decision.context
    if decision.phase is Phase.INVALID:
        yield "InvalidSpec", f"the spec can't be used: {'; '.join(map(str, context.mistakes[:_SHOWN]))}"
    failed = [each for each in decision.instances if each.error is not None]
    if failed:
        texts = [
            f"{each.name} {_ended(each)}: {each.error[0]}: {each.error[1]}" for each in failed[:_SHOWN] if each.error
        ]
        more = f", and {len(failed) - _SHOWN} more pods" if len(failed) > _SHOWN else ""
        remedy = f"Remove the cause, then set spec.restartNonce to {context.nonce + 1} or change the spec"
        yield "PodsInError", f"{'; '.join(texts)}{more}. {remedy}"
    yield from _topics_gone(decision)
    yield from _lost(decision)
    record, refused = given_up(decision), refusal(decision)
    if record is not None:
        yield ROLLED_BACK, rolled_back_message(record)
    if refused is not None:
        yield ROLLBACK_REFUSED, f"spec.rollback does not go back: {refused}"
    crashed = [each for each in decision.instances if rests(each, context.now)]
    if crashed:
        texts = [f"{each.name} ({each.account.last.reason if each.account.last else 'unknown'})" for each in crashed]
        yield "PodsCrashed", f"crashed: {listed(texts)}"
    if context.observed.refused:
        yield TOPOLOGY_REFUSED, _refused(context.observed.refused)
    if context.foreign:
        found = listed([pod.name for pod in context.foreign])
        text = f"pods with the label {names.LABEL_APPLICATION}={context.identity.name} that the operator did not make"
        yield "ForeignPods", f"{text}: {found}. Remove them, or their label"
    yield from _unlike_claims(decision)
    yield from late_resets(decision)
    if decision.reset.refused and decision.reset.shown is not None:
        text = f"{decision.reset.title} was refused: {decision.reset.shown.message}"
        yield RESET_REFUSED, f"{text}. Change spec.reset, or take it out"


def _topics_gone(decision: Decision) -> Iterator[tuple[str, str]]:
    """Internal topics that are missing or do not fit while pods run, where the operator does not make them."""
    context, said = decision.context, decision.topics.condition
    if not decision.runs or decision.waits_for_topics or said is None or said[0] != "False":
        return
    topics = context.observed.topics
    manual = context.application is not None and context.application.spec.internal_topics.setup == "manual"
    if manual or (topics is not None and topics.failure is not None):
        yield said[1], f"pods run on without internal topics that they need: {said[2]}"


def _lost(decision: Decision) -> Iterator[tuple[str, str]]:
    """Pods that do not go, and instances that do not come."""
    context = decision.context
    stuck = [each.pod for each in decision.instances if each.standing is Standing.STUCK and each.pod is not None]
    if stuck:
        texts = [
            f"{pod.name} on node {pod.node or 'unknown'}, since {text_of(pod.gone_by or context.now)}" for pod in stuck
        ]
        remedy = (
            "When the node is off for good, delete it, or delete the pod by force: kubectl delete pod --force"
            f" --namespace {context.identity.namespace} {stuck[0].name}."
            " spec.nodeLoss.forceDeleteAfter does it by itself"
        )
        yield STUCK_TERMINATING, f"deleted pods whose node does not confirm their end: {listed(texts)}. {remedy}"
    late = decision.late
    if late:
        texts = [
            f"{each.name} since {text_of(each.wait.since)}: {holdup(context, each)}"
            for each in late[:_SHOWN]
            if each.wait is not None
        ]
        more = f", and {len(late) - _SHOWN} more" if len(late) > _SHOWN else ""
        yield EXCEEDED, f"instances that do not get nearer to RUNNING and restored: {'; '.join(texts)}{more}"
    waits = decision.wait_for_topics
    if waits is not None and overdue(context, waits):
        _, reason, message = decision.topics.condition or context.past.condition("InternalTopicsReady")
        text = f"no pod is made or replaced, as the internal topics are not ready since {text_of(waits.since)}"
        yield EXCEEDED, f"{text}: {reason}: {message}"


def _unlike_claims(decision: Decision) -> Iterator[tuple[str, str]]:
    context = decision.context
    storage = context.application.spec.state.storage if context.application is not None else None
    if storage is None:
        return
    claimed = [
        ("PersistentVolumeClaim", names.claim(context.identity.name, each.ordinal)) for each in decision.instances
    ]
    found = [context.observed.objects[key] for key in claimed if key in context.observed.objects]
    unlike = [text for claim in found if (text := mismatch(storage, claim)) is not None]
    if unlike:
        text = f"claims that can't become what spec.state.storage says: {listed(unlike)}"
        remedy = "To have others, scale down, delete the claims and scale up: stores are restored from Kafka"
        yield "StorageKept", f"{text}. {remedy}"


def rests(instance: Instance, now: float) -> bool:
    """Whether its pod crashed and is made again later."""
    until = instance.account.until
    return instance.standing in (Standing.CRASHED, Standing.ABSENT) and until is not None and until > now


def _refused(changes: Sequence[Change]) -> str:
    texts = [f"{each.where}: {each.what} ({each.consequence})" for each in changes[:_SHOWN]]
    more = f", and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    text = clipped("; ".join(texts), _REFUSED_LENGTH)
    remedy = f"Pods stay as they are until {TOPOLOGY_REMEDY}"
    return f"the change of spec.topology would lose or misread state: {text}{more}. {remedy}"


def _ended(instance: Instance) -> str:
    if instance.standing is Standing.LOST_IN_ERROR:
        return "ended in ERROR and was removed"
    return "ended in ERROR" if instance.standing is not Standing.FAILING else "is on its way to ERROR"
