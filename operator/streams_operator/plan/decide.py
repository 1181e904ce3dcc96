"""From an Observed to a Plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from streams_operator.model import Event, KafkaWork, Observed, Plan, Removal
from streams_operator.plan.decision import Decision, Phase
from streams_operator.plan.deletion import deletion
from streams_operator.plan.differs import differs
from streams_operator.plan.parts import desired_parts, desired_pods, outlived, unwanted
from streams_operator.plan.pods.instances import Instance, instances
from streams_operator.plan.pods.lost_nodes import forced_out
from streams_operator.plan.pods.lost_nodes import times as loss_times
from streams_operator.plan.pods.moves import Moves, closing_in_order, moves, staying
from streams_operator.plan.pods.pausing import pause_signals
from streams_operator.plan.pods.progress import due_at
from streams_operator.plan.pods.shutdown import requester, shutdown_signals, signal_text
from streams_operator.plan.pods.standing import Standing
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_operator.plan.scaling.autoscaling import autoscale
from streams_operator.plan.status.application_status import exact_lag, status
from streams_operator.plan.status.events import events
from streams_operator.plan.status.past import Wait
from streams_operator.plan.status.times import seconds_of
from streams_operator.plan.topics import topics
from streams_operator.plan.version.rollback import given_up

_RESYNC_SETTLED = 60.0  # seconds until lag is read again, and what spec.restartOnChange follows, while all is well
_RESYNC_MOVING = 15.0  # while pods are on their way
_RESYNC_RESTORING = 5.0  # while there are records left that somebody may be watching, or pods that do not answer
_FIRST_STATUS = 60.0  # seconds that a new application's first status waits for the brokers
_SOONEST = 1.0  # seconds; times in a status are whole ones


def plan(observed: Observed) -> Plan:
    """What to do now about one application, whatever happened before: a function of `observed` alone.

    Raises nothing for any resource that the API server accepts. Everything in the plan may be done again: carried out
    in part, or twice, the next plan comes to the same end. The status has to be written before anything else is done:
    crashes are counted there, and pods are on record there before they are made.
    """
    context = ReconcileContext.of(observed)
    if context.deleted_at is not None:
        return _deleted(context, context.deleted_at)
    if context.application is None:
        known = _recorded(context, instances(context))
        return _plan(Decision(Phase.INVALID, context, topics(context), known, Moves(), signals=shutdown_signals(known)))
    if context.on_hold:
        verdict = replace(topics(context), work=None, requeue_at=None)
        return _plan(Decision(Phase.HOLD, context, verdict, _recorded(context, instances(context)), Moves()))
    if context.suspended:
        leaving = (*closing_in_order(context, context.own, "the application is suspended"), *forced_out(context))
        return _plan(Decision(Phase.SUSPEND, context, topics(context), instances(context), Moves(remove=leaving)))
    verdict, found = topics(context), instances(context)
    steps = moves(context, found, verdict.ready)
    steps = replace(steps, remove=(*steps.remove, *forced_out(context)))
    gone = {each.pod.name for each in steps.remove}
    signals = (*shutdown_signals(found), *pause_signals(context), *staying(context, gone))
    signals = tuple(each for each in signals if each.pod not in gone)
    return _plan(Decision(Phase.RUN, context, verdict, _recorded(context, found, steps.create), steps, signals=signals))


def _recorded(
    context: ReconcileContext, found: Sequence[Instance], create: Sequence[Instance] = ()
) -> tuple[Instance, ...]:
    """The instances as they go on record: new ones once their pods are to be made."""
    made = {each.ordinal for each in create}
    return tuple(
        replace(
            each,
            digest=context.digest,
            nonce=context.nonce,
            outdated=False,
            wait=Wait(context.now) if each.outdated else each.wait,
        )
        if each.ordinal in made and context.digest is not None
        else each
        for each in found
        if each.pod is not None or each.ordinal in made or each.name in context.past.instances
    )


def _plan(decision: Decision) -> Plan:
    context, steps = decision.context, decision.moves
    apply: list[dict[str, Any]] = []
    remove = [leaving.removal for leaving in steps.remove]
    if context.application is not None and context.digest is not None and decision.phase is not Phase.HOLD:
        parts = desired_parts(context, context.application, context.digest, decision.instances, decision.topics.ready)
        there = context.observed.objects
        apply += [part for part in parts if differs(part, there.get((part["kind"], part["metadata"]["name"])))]
        requesting = requester(decision.instances, context.digest, context.nonce)
        shutdown_text = None if requesting is None else signal_text(requesting)
        apply += desired_pods(context, context.application, context.digest, steps.create, shutdown_text)
        remove += [*outlived(context), *unwanted(context, context.application)]
    waits = (*(each.wait for each in decision.instances), decision.wait_for_topics)
    dues = [due for wait in waits if (due := due_at(context, wait)) is not None and due > context.now]
    requeue_at = [*steps.requeue_at, *loss_times(context), *dues, decision.topics.requeue_at, _resync_at(decision)]
    if decision.phase is Phase.RUN and given_up(decision) is not None and not context.observed.rolled_back:
        requeue_at.append(context.now)  # once status says so the other version is in force
    return _with_status(decision, apply, remove, decision.topics.work, requeue_at)


def _deleted(context: ReconcileContext, since: float) -> Plan:
    step = deletion(context, since)
    verdict = replace(topics(context), work=None, requeue_at=None)
    decision = Decision(Phase.DELETE, context, verdict, instances(context), Moves(remove=tuple(step.remove)), step.note)
    remove = [leaving.removal for leaving in step.remove]
    found = _with_status(decision, [], remove, step.work, [step.requeue_at], step.events)
    return replace(found, finalizer=not step.finished)


def _with_status(
    decision: Decision,
    apply: Sequence[dict[str, Any]],
    remove: Sequence[Removal],
    work: KafkaWork | None,
    requeue_at: Iterable[float | None],
    more_events: Sequence[Event] = (),
) -> Plan:
    decision = replace(decision, scaling=autoscale(decision))
    now, new, scaling = decision.context.now, status(decision), decision.scaling
    document = new.document()
    unsaid = _first_status_due(decision)
    times = [at - now for at in (*requeue_at, unsaid) if at is not None]
    if scaling is not None and scaling.interval is not None:
        times.append(0.0 if scaling.scaled else scaling.interval)  # once status says so another number is in force
    return Plan(
        status=document if unsaid is None and document != decision.context.past.document else None,
        apply=tuple(apply),
        signals=(*decision.signals, *(signal for leaving in decision.moves.remove for signal in leaving.signals)),
        remove=tuple(remove),
        kafka=work,
        events=(*events(decision, new), *more_events) if unsaid is None else (),
        lag=exact_lag(decision),
        load=scaling.memory if scaling is not None else None,
        requeue_after=max(min(times), _SOONEST) if times else None,
    )


def _first_status_due(decision: Decision) -> float | None:
    """Until when a new application has no status, as there is nothing to say but that the brokers are being asked."""
    context = decision.context
    made_at = seconds_of(context.metadata.get("creationTimestamp"))
    unasked = decision.phase is Phase.RUN and context.observed.topics is None
    if made_at is None or not unasked or context.past.document or context.observed.pods or decision.moves.create:
        return None
    due = made_at + _FIRST_STATUS
    return due if due > context.now else None


def _resync_at(decision: Decision) -> float | None:
    """When to read again what no event brings: lag, and records left."""
    context = decision.context
    if not decision.runs or not context.own:
        return None
    if any(pod.records_left or pod.doubted or pod.silent for pod in context.own):
        return context.now + _RESYNC_RESTORING
    if any(each.records_left for each in context.observed.accounts.values()):
        return context.now + _RESYNC_RESTORING
    moving = any(each.standing in (Standing.NEW, Standing.CLOSING, Standing.ABSENT) for each in decision.instances)
    return context.now + (_RESYNC_MOVING if moving else _RESYNC_SETTLED)
