"""spec.autoscaling in one round: what is decided, how status and events say it, and what is remembered of the load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from streams_operator.model import Event, Load
from streams_operator.plan.decision import Decision, Phase
from streams_operator.plan.scaling.replica_decision import LIMITED, Reason, Verdict, decide
from streams_operator.plan.scaling.scaling_freeze import Freeze, frozen
from streams_operator.plan.scaling.scaling_lessons import memory
from streams_operator.plan.scaling.scaling_policy import Policy
from streams_operator.plan.scaling.scaling_result import Scaling
from streams_operator.plan.status.times import text_of
from streams_runtime.api.status.resource_status import AutoscalingStatus

_SAME_RATE = 1.5  # a rate in a status is written anew when it is another by more than this factor


def autoscale(decision: Decision) -> Scaling | None:
    """What spec.autoscaling comes to now; None: it is not asked for, and never was.

    A new number is in force once the status has it: the next round makes or removes the pod.
    """
    context, past = decision.context, decision.context.past.status.autoscaling
    spec = context.application.spec.autoscaling if context.application is not None else None
    if spec is None or decision.phase is Phase.DELETE:
        kept = past if spec is not None or context.application is None else None
        return Scaling(kept, None) if kept is not None else None
    tasks = decision.topics.tasks
    policy = Policy.of(spec, spec.max_replicas if tasks is None else tasks)
    freeze, current = frozen(decision), context.replicas
    new_rate = freeze is not None and freeze.new_rate
    load = _with_rate(context.observed.load, past, new_rate)
    before = past.reason if past is not None else ""
    if freeze is not None:
        verdict = Verdict(current, freeze.reason, freeze.message, load.learned.rate)
    else:
        verdict = decide(policy, load, current, before)
    status = _status(decision, verdict, past)
    quiet = freeze is None or freeze.reason == "LagUnknown"
    measures = decision.phase is Phase.RUN and not context.paused
    return Scaling(
        status=status,
        memory=memory(policy, load, verdict, current, quiet),
        scaled=verdict.replicas != current,
        events=tuple(_events(decision, verdict, freeze, before)),
        interval=policy.interval if measures else None,
    )


def _with_rate(load: Load, past: AutoscalingStatus | None, new_rate: bool) -> Load:
    """With the rate of the status, where the operator remembers none."""
    known = load.learned.rate
    if known is None and past is not None and past.instance_rate:
        known = float(past.instance_rate)
    return replace(load, learned=replace(load.learned, rate=None if new_rate else known))


def _status(decision: Decision, verdict: Verdict, past: AutoscalingStatus | None) -> AutoscalingStatus:
    """As it stands already, unless the number or the reason is another: figures in it would move in every round."""
    context, known = decision.context, past or AutoscalingStatus()
    same = (known.replicas, known.reason) == (verdict.replicas, verdict.reason)
    seen = context.past.status.observed_generation == context.metadata.get("generation", 0)
    scaled = past is not None and known.replicas != verdict.replicas
    return AutoscalingStatus(
        replicas=verdict.replicas,
        reason=str(verdict.reason),
        message=known.message if same and seen else verdict.message or known.message,
        since=known.since if same and known.since else text_of(context.now),
        last_scale_time=text_of(context.now) if scaled else known.last_scale_time,
        last_scale_message=_why(verdict, known, context.replicas) if scaled else known.last_scale_message,
        instance_rate=_shown_rate(known.instance_rate, verdict.rate),
    )


def _why(verdict: Verdict, known: AutoscalingStatus, bounded: int) -> str:
    """The verdict's own words, or that the spec's bounds, or the tasks, allow no other number."""
    if verdict.replicas != bounded:
        return verdict.message
    return f"from {known.replicas} to {bounded}, which minReplicas, maxReplicas and the number of tasks allow"


def _shown_rate(before: int | None, rate: float | None) -> int | None:
    """Whole records a second; the one that stands there until it is another by a factor."""
    found = None if rate is None else round(rate)
    if not found or not before:
        return found or None
    return before if before / _SAME_RATE <= found <= before * _SAME_RATE else found


def _events(decision: Decision, verdict: Verdict, freeze: Freeze | None, before: str) -> Iterator[Event]:
    past, current = decision.context.past.status.autoscaling, decision.context.replicas
    if past is not None and past.replicas > 0 and past.replicas != current:
        reason = Reason.SCALED_UP if current > past.replicas else Reason.SCALED_DOWN
        yield Event("Normal", reason, _why(Verdict(current, reason, ""), past, current))
    if verdict.replicas != current:
        yield Event("Normal", verdict.reason, verdict.message)
    elif verdict.reason != before and verdict.reason in LIMITED:
        yield Event("Warning", "ScalingLimited", verdict.message)
    elif freeze is not None and freeze.notable and freeze.reason != before:
        yield Event("Normal", "ScalingFrozen", f"{current} instances stay as many: {freeze.message}")
