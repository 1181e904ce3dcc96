"""The conditions of the resource."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streams_operator import names
from streams_operator.model import AwaitedImage
from streams_operator.plan.decision import Decision, Phase
from streams_operator.plan.pods.instances import Instance
from streams_operator.plan.pods.pausing import lagging
from streams_operator.plan.pods.progress import EXCEEDED, overdue
from streams_operator.plan.pods.rolling import arrived
from streams_operator.plan.pods.standing import Standing, available
from streams_operator.plan.status.application_state import state
from streams_operator.plan.status.complaints import TOPOLOGY_REFUSED, TOPOLOGY_REMEDY, complaints, rests
from streams_operator.plan.status.holdup import holdup
from streams_operator.plan.status.kstatus import Said, abnormal
from streams_operator.plan.status.message_texts import CONDITION_LENGTH, clipped, listed
from streams_operator.plan.status.suspending import all_closed, closed, suspended_progress
from streams_operator.plan.status.times import text_not_before, text_of
from streams_operator.plan.version.rollback import ROLLED_BACK
from streams_runtime.api.status.condition_status import ConditionStatus

_GAPS = (Standing.ABSENT, Standing.CLOSING, Standing.NEW, Standing.DONE)

ON_HOLD = "ReconciliationPaused"
"""Reason of Progressing, and of Ready where there is no pod."""
IMAGE_AWAITED, IMAGE_STOPPED = "AwaitingImage", "ImageRolloutStopped"
"""Reasons of Progressing."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition without its times."""

    type: str
    status: str
    reason: str
    message: str

    @property
    def said(self) -> Said:
        """All but the type."""
        return (self.status, self.reason, self.message)


def conditions(decision: Decision) -> list[ConditionStatus]:
    """As they stand in status; the time of a transition is the previous one's unless `status` is another."""
    context, generation = decision.context, decision.context.metadata.get("generation", 0)
    found = []
    for each in _all(decision):
        before = context.past.conditions.get(each.type)
        since = before.last_transition_time if before is not None and before.status == each.status else ""
        found.append(
            ConditionStatus(
                type=each.type,
                status=each.status,
                reason=each.reason,
                message=clipped(each.message, CONDITION_LENGTH),
                last_transition_time=since or text_of(context.now),
                observed_generation=generation,
            )
        )
    if decision.topics.condition is None:
        found.insert(1, context.past.conditions["InternalTopicsReady"])
    return found


def _all(decision: Decision) -> Iterator[Condition]:
    yield ready(decision)
    if decision.topics.condition is not None:
        yield Condition("InternalTopicsReady", *decision.topics.condition)
    working, failed = progressing(decision), degraded(decision)
    yield working
    yield failed
    yield suspended(decision)
    if (condition := paused(decision)) is not None:
        yield condition
    if (found := abnormal(decision, working.said, failed.said, IMAGE_AWAITED)) is not None:
        yield Condition(*found)


def ready(decision: Decision) -> Condition:
    """Whether every instance that the resource asks for does its part. Where it asks for none that is so."""
    context, now = decision.context, state(decision)
    if decision.phase is Phase.INVALID:
        return Condition("Ready", "False", "InvalidSpec", "\n".join(map(str, context.mistakes)))
    if decision.phase is Phase.DELETE:
        return Condition("Ready", "False", "Deleting", decision.note)
    if decision.phase is Phase.SUSPEND or now == "SUSPENDED":
        reason, message = closed(decision)
        settled = now == "SUSPENDED" and reason == "Suspended" and not decision.reset.under_way
        return Condition("Ready", str(settled), reason, message)
    if context.replicas == 0:
        return Condition("Ready", str(not context.own), "NoReplicas", "spec.replicas is 0")
    if now == "WAITING":
        on_hold = (ON_HOLD, f"no pod is made while {names.ANNOTATION_HOLD} is true")
        for_topics = ("WaitingForTopics", "no pod is made before the internal topics are ready")
        return Condition("Ready", "False", *(on_hold if decision.phase is Phase.HOLD else for_topics))
    count = sum(1 for each in context.own if available(each))
    arrived_all = now == "RUNNING" and count >= context.replicas
    text = f"{count} of {context.replicas} instances are ready"
    tasks = decision.topics.tasks
    if tasks is not None and tasks < context.replicas:
        text += f"; there are {tasks} tasks, so {context.replicas - tasks} stand idle"
    reason = "PodsNotReady" if now == "RUNNING" and not arrived_all else _camel(now)
    return Condition("Ready", str(arrived_all), reason, text)


def progressing(decision: Decision) -> Condition:
    """Whether something is under way that the operator sees to."""
    if decision.phase is Phase.DELETE:
        return Condition("Progressing", "True", "Deleting", decision.note)
    if decision.phase is Phase.INVALID:
        return Condition("Progressing", "False", "InvalidSpec", "nothing is changed until the spec is right")
    if decision.phase is Phase.SUSPEND:
        return Condition("Progressing", *suspended_progress(decision))
    if decision.phase is Phase.HOLD:
        return Condition("Progressing", "False", ON_HOLD, f"nothing is changed while {names.ANNOTATION_HOLD} is true")
    return _held_up(decision) or _going_on(decision)


def _held_up(decision: Decision) -> Condition | None:
    late = [each.name for each in decision.late]
    if late:
        text = f"{listed(late)} did not get nearer to RUNNING and restored in spec.progressDeadline; Degraded says why"
        return Condition("Progressing", "False", EXCEEDED, text)
    if overdue(decision.context, decision.wait_for_topics):
        text = "the internal topics were not ready in spec.progressDeadline; Degraded says why"
        return Condition("Progressing", "False", EXCEEDED, text)
    return None


def _going_on(decision: Decision) -> Condition:
    for reason, text in _under_way(decision):
        return Condition("Progressing", "True", reason, text)
    context = decision.context
    if context.observed.refused:
        text = f"the pods stay as they are until {TOPOLOGY_REMEDY}; Degraded says why"
        return Condition("Progressing", "False", TOPOLOGY_REFUSED, text)
    if context.observed.rolled_back:
        return Condition("Progressing", "False", ROLLED_BACK, "pods are of the last stable version; Degraded says why")
    if context.observed.awaited is not None:
        return _awaiting(context.observed.awaited)
    return Condition("Progressing", "False", "Settled", "there is nothing to do")


def _awaiting(awaited: AwaitedImage) -> Condition:
    """Nothing of others' applications: they may be other people's."""
    if awaited.stopped:
        text = f"{awaited.image} goes to no further application, as one that has it is Degraded; pods keep their image"
        return Condition("Progressing", "False", IMAGE_STOPPED, f"{text}. The operator's log says which")
    text = f"the operator's default image is {awaited.image}, which {awaited.at_a_time} applications get at a time"
    return Condition("Progressing", "True", IMAGE_AWAITED, f"{text}; this one waits")


def _under_way(decision: Decision) -> Iterator[tuple[str, str]]:
    """What is going on, the most telling first."""
    context, moves = decision.context, decision.moves
    wanted = [each for each in decision.instances if each.ordinal < context.replicas]
    if decision.waits_for_topics:
        yield "WaitingForTopics", "no pod is made or replaced before the internal topics are ready"
    if moves.rolling.left:
        text = f"{len(moves.rolling.left)} of {context.replicas} pods are still to be replaced"
        if moves.rolling.awaited:
            waits = [f"{each.name} ({holdup(context, each)})" for each in moves.rolling.awaited]
            text += f"; the next is replaced when these are RUNNING, restored and ready: {listed(waits)}"
        yield "RollingOut", text
    surplus = [pod.name for pod in context.own if pod.ordinal is not None and pod.ordinal >= context.replicas]
    if surplus:
        yield "ScalingDown", f"closing {listed(surplus)}, from the last on"
    resting = [each for each in wanted if rests(each, context.now)]
    if resting:
        until = [f"{each.name} at {text_not_before(each.account.until or context.now)}" for each in resting]
        yield "BackingOff", f"after a crash these are made again: {listed(until)}"
    starting = [
        f"{each.name} ({holdup(context, each)})"
        for each in wanted
        if each.standing in _GAPS or (_lives(each) and not arrived(each))
    ]
    if starting:
        yield "Starting", f"on their way to RUNNING: {listed(starting)}"


def degraded(decision: Decision) -> Condition:
    """Whether something needs a person, or has failed by itself."""
    parts = list(complaints(decision))
    if not parts:
        return Condition("Degraded", "False", "AsExpected", "nothing has failed")
    return Condition("Degraded", "True", parts[0][0], "; ".join(text for _, text in parts))


def suspended(decision: Decision) -> Condition:
    """Whether everything is closed because spec.suspend says so."""
    if decision.phase is Phase.SUSPEND and decision.context.own:
        return Condition("Suspended", "False", "Suspending", "pods are closing")
    if state(decision) == "SUSPENDED":
        return Condition("Suspended", "True", "Suspended", all_closed(decision))
    return Condition("Suspended", "False", "NotSuspended", "spec.suspend is false")


def paused(decision: Decision) -> Condition | None:
    """Whether no pod processes records because spec.paused says so; None: it never did."""
    context = decision.context
    if not context.paused and "Paused" not in context.past.conditions:
        return None
    if not decision.runs:
        return Condition("Paused", "False", "NotRunning", "there are no pods to pause, or they are closing")
    behind = listed([pod.name for pod in lagging(context)])
    if context.paused and behind:
        return Condition("Paused", "False", "Pausing", f"{behind} still process records")
    if context.paused:
        return Condition("Paused", "True", "Paused", "no instance processes records, as spec.paused is true")
    if behind:
        return Condition("Paused", "True", "Resuming", f"{behind} still process nothing")
    return Condition("Paused", "False", "NotPaused", "spec.paused is false")


def _lives(instance: Instance) -> bool:
    return instance.standing is Standing.LIVE


def _camel(state: str) -> str:
    return "".join(part.capitalize() for part in state.split("_"))
