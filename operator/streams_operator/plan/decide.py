"""From an Observed to a Plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from streams_operator.model import Happening, KafkaWork, Observed, Plan, Removal
from streams_operator.plan.case import Case
from streams_operator.plan.decision import Decision, Phase
from streams_operator.plan.deletion import deletion
from streams_operator.plan.differs import differs
from streams_operator.plan.happenings import happenings
from streams_operator.plan.instances import Instance, instances
from streams_operator.plan.lost_nodes import forced_out
from streams_operator.plan.lost_nodes import times as loss_times
from streams_operator.plan.moves import Moves, closing_in_order, moves
from streams_operator.plan.parts import desired_parts, desired_pods, outlived, unwanted
from streams_operator.plan.past import Wait
from streams_operator.plan.progress import due_at
from streams_operator.plan.rollback import given_up
from streams_operator.plan.shutdown import asking, tellings, words
from streams_operator.plan.standing import Standing
from streams_operator.plan.status import exact_lag, status
from streams_operator.plan.times import seconds_of
from streams_operator.plan.topics import topics

_LOOK_SETTLED = 60.0  # seconds between two looks at lag, and at what spec.restartOnChange follows, while all is well
_LOOK_MOVING = 15.0  # while pods are on their way
_LOOK_RESTORING = 5.0  # while there are records left that somebody may be watching, or pods that do not answer
_FIRST_ANSWER = 60.0  # seconds that a new application's first status waits for the brokers; a thousand ask in turn
_SOONEST = 1.0  # seconds; times in a status are whole ones


def plan(observed: Observed) -> Plan:
    """What to do now about one application, whatever happened before: a function of `observed` alone.

    Raises nothing for any resource that the API server accepts. Everything in the plan may be done again: carried out
    in part, or twice, the next plan comes to the same end. The status has to be written before anything else is done:
    crashes are counted there, and pods are on record there before they are made.
    """
    case = Case.of(observed)
    if case.deleted_at is not None:
        return _deleted(case, case.deleted_at)
    if case.application is None:
        known = _recorded(case, instances(case))
        return _plan(Decision(Phase.INVALID, case, topics(case), known, Moves(), tell=tellings(known)))
    if case.suspended:
        leaving = (*closing_in_order(case, case.own, "the application is suspended"), *forced_out(case))
        return _plan(Decision(Phase.SUSPEND, case, topics(case), instances(case), Moves(remove=leaving)))
    verdict, found = topics(case), instances(case)
    steps = moves(case, found, verdict.ready)
    steps = replace(steps, remove=(*steps.remove, *forced_out(case)))
    gone = {each.pod.name for each in steps.remove}
    tell = tuple(each for each in tellings(found) if each.pod not in gone)
    return _plan(Decision(Phase.RUN, case, verdict, _recorded(case, found, steps.create), steps, tell=tell))


def _recorded(case: Case, found: Sequence[Instance], create: Sequence[Instance] = ()) -> tuple[Instance, ...]:
    """The instances as they go on record: new ones once their pods are to be made."""
    made = {each.ordinal for each in create}
    return tuple(
        replace(
            each,
            digest=case.digest,
            nonce=case.nonce,
            outdated=False,
            wait=Wait(case.now) if each.outdated else each.wait,
        )
        if each.ordinal in made and case.digest is not None
        else each
        for each in found
        if each.pod is not None or each.ordinal in made or each.name in case.past.instances
    )


def _plan(decision: Decision) -> Plan:
    case, steps = decision.case, decision.moves
    apply: list[dict[str, Any]] = []
    remove = [leaving.removal for leaving in steps.remove]
    if case.application is not None and case.digest is not None:
        parts = desired_parts(case, case.application, case.digest, decision.instances, decision.topics.ready)
        there = case.observed.objects
        apply += [part for part in parts if differs(part, there.get((part["kind"], part["metadata"]["name"])))]
        asker = asking(decision.instances, case.digest, case.nonce)
        told = None if asker is None else words(asker)
        apply += desired_pods(case, case.application, case.digest, steps.create, told)
        remove += [*outlived(case), *unwanted(case, case.application)]
    waits = (*(each.wait for each in decision.instances), decision.wait_for_topics)
    dues = [due for wait in waits if (due := due_at(case, wait)) is not None and due > case.now]
    wake = [*steps.wake, *loss_times(case), *dues, decision.topics.wake, _look(decision)]
    if given_up(decision) is not None and not case.observed.rolled_back:
        wake.append(case.now)  # once status says so the other version is in force
    return _told(decision, apply, remove, decision.topics.work, wake)


def _deleted(case: Case, since: float) -> Plan:
    step = deletion(case, since)
    verdict = replace(topics(case), work=None, wake=None)
    decision = Decision(Phase.DELETE, case, verdict, instances(case), Moves(remove=tuple(step.remove)), step.note)
    remove = [leaving.removal for leaving in step.remove]
    told = _told(decision, [], remove, step.work, [step.wake], step.events)
    return replace(told, finalizer=not step.finished)


def _told(
    decision: Decision,
    apply: Sequence[dict[str, Any]],
    remove: Sequence[Removal],
    work: KafkaWork | None,
    wake: Iterable[float | None],
    more_events: Sequence[Happening] = (),
) -> Plan:
    now, new = decision.case.now, status(decision)
    unsaid = _first_answer_due(decision)
    times = [at - now for at in (*wake, unsaid) if at is not None]
    return Plan(
        status=new if unsaid is None and new != decision.case.past.status else None,
        apply=tuple(apply),
        tell=decision.tell,
        remove=tuple(remove),
        kafka=work,
        events=(*happenings(decision, new), *more_events) if unsaid is None else (),
        lag=exact_lag(decision),
        again_in=max(min(times), _SOONEST) if times else None,
    )


def _first_answer_due(decision: Decision) -> float | None:
    """Until when a new application has no status, as there is nothing to say but that the brokers are being asked."""
    case = decision.case
    made_at = seconds_of(case.metadata.get("creationTimestamp"))
    unasked = decision.phase is Phase.RUN and case.observed.topics is None
    if made_at is None or not unasked or case.past.status or case.observed.pods or decision.moves.create:
        return None
    due = made_at + _FIRST_ANSWER
    return due if due > case.now else None


def _look(decision: Decision) -> float | None:
    """When the pods are to be asked again what no event tells: lag, and records left."""
    case = decision.case
    if decision.phase is not Phase.RUN or not case.own:
        return None
    if any(pod.records_left or pod.doubted or pod.silent for pod in case.own):
        return case.now + _LOOK_RESTORING
    if any(each.records_left for each in case.observed.accounts.values()):
        return case.now + _LOOK_RESTORING
    moving = any(each.standing in (Standing.NEW, Standing.CLOSING, Standing.ABSENT) for each in decision.instances)
    return case.now + (_LOOK_MOVING if moving else _LOOK_SETTLED)
