"""One step up, one step down, or why neither: a function of the policy, the samples and the present number."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from streams_operator.application_load import Load, LoadSample
from streams_operator.plan.scaling.capacity import capacity, needed
from streams_operator.plan.scaling.scaling_policy import Policy, stabilization_of

_RECENT = 3  # samples that have to agree before one instance is added
_BUSY = 3  # busy samples of one instance, or one of three, that a rate can be told from
_USED = 0.8  # of their capacity, at most, that fewer instances may be given
ROOM = 0.9
"""Of their capacity that instances may be given for good: the rest is for what a move, or a restart, leaves behind."""
_LITTLE_LAG = 100  # records; as in the status, that is what is under way in an application that keeps up


class Reason(enum.StrEnum):
    """Why the number is what it is. Those of an application in which something is under way are in scaling_freeze."""

    SCALED_UP = "ScaledUp"
    SCALED_DOWN = "ScaledDown"
    OBSERVING = "Observing"
    STEADY = "Steady"
    AT_MINIMUM = "AtMinimum"
    STABILIZING = "StabilizingDown"
    RATE_UNKNOWN = "RateUnknown"
    AT_MAXIMUM = "AtMaximum"
    AT_TASKS = "AtTasks"
    ONE_TASK_BEHIND = "OneTaskBehind"
    NO_PROGRESS = "NoProgress"


LIMITED = (Reason.AT_MAXIMUM, Reason.AT_TASKS, Reason.ONE_TASK_BEHIND, Reason.NO_PROGRESS)
"""Reasons for which an application gets no instance that it could use."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`replicas` are wanted from now on. `rate`: records a second of a busy instance, None: not known."""

    replicas: int
    reason: str
    message: str
    rate: float | None = None


def decide(policy: Policy, load: Load, current: int, before: str) -> Verdict:
    """What to do while nothing is under way. `before`: the last reason, which stays where samples do not agree."""
    earliest = load.quiet_since + policy.settling
    settled = [each for each in load.samples if each.since >= earliest]
    found = measured_rate(settled, policy)
    rate = found or load.learned.rate
    recent = settled[-_RECENT:]
    if len(recent) < _RECENT:
        text = "the load is observed until it is known what an instance processes and what comes in"
        return Verdict(current, Reason.OBSERVING, text, rate)
    if found == 0 and all(each.lag for each in recent):
        text = f"nothing is processed, though {recent[-1].lag} records wait; more instances would not change that"
        return Verdict(current, Reason.NO_PROGRESS, text, rate)
    within = float("inf") if _recovers(policy, load) else policy.target + load.learned.cost
    asked = [0 if rate is None else _asked(policy, each, rate, within) for each in recent]
    if rate is not None and min(asked) > current:
        return _more(policy, recent[-1], current, min(asked), rate)
    if before in LIMITED and max(asked) > current:
        return Verdict(current, before, "", rate)
    return _fewer(policy, load, settled, current, rate)


def measured_rate(samples: Sequence[LoadSample], policy: Policy) -> float | None:
    """Records a second of one instance while it was busy; None: too little was seen of that."""
    seconds = sum(each.busy_seconds for each in samples)
    return sum(each.busy_records for each in samples) / seconds if seconds >= _BUSY * policy.interval else None


def _recovers(policy: Policy, load: Load) -> bool:
    """Whether those that are left still catch up with what the last step down has left behind, as they have room for:
    a step back would cost as much again. They get as long as that room needs for the time of the step.
    """
    learned = load.learned
    return learned.recovering and load.now - load.quiet_since <= (learned.cost + policy.settling) / (1 - ROOM)


def _asked(policy: Policy, sample: LoadSample, rate: float, within: float) -> int:
    """The instances that process what comes in, and within so many seconds what waits."""
    return needed(_demand(policy, sample, within), policy.tasks, rate)


def caught_up(sample: LoadSample, interval: float) -> bool:
    """Whether no more waits than is under way in an application that keeps up; `interval`: the policy's."""
    return sample.furthest <= _under_way(sample, interval)


def _under_way(sample: LoadSample, interval: float) -> float:
    return max(_LITTLE_LAG, sample.arrival * interval)


def _demand(policy: Policy, sample: LoadSample, within: float) -> float:
    """Records a second that have to be processed for the backlog to be gone within so many seconds."""
    return sample.arrival + max(sample.furthest - _under_way(sample, policy.interval), 0.0) / within


def _more(policy: Policy, last: LoadSample, current: int, asked: int, rate: float) -> Verdict:
    came = f"{last.arrival:.0f} records a second come in, {last.lag} wait"
    figures = f"{came}, and one instance processes {rate:.0f} a second"
    if current >= policy.most:
        if policy.most < policy.limit:
            text = f"{figures}; each of the {policy.tasks} tasks has an instance, and a task can't be shared"
            return Verdict(current, Reason.AT_TASKS, text, rate)
        return Verdict(current, Reason.AT_MAXIMUM, f"{figures}; maxReplicas is {policy.limit}", rate)
    if last.one_task_behind:
        text = f"{figures}; what waits lies with instances of one task each, which no other can share"
        return Verdict(current, Reason.ONE_TASK_BEHIND, text, rate)
    many = f"all {policy.tasks} tasks apart" if asked > policy.tasks else f"{asked} instances"
    text = f"from {current} to {current + 1}, as it takes {many}: {figures}"
    return Verdict(current + 1, Reason.SCALED_UP, text, rate)


def _fewer(policy: Policy, load: Load, settled: Sequence[LoadSample], current: int, rate: float | None) -> Verdict:
    if current <= policy.least:
        return Verdict(current, Reason.AT_MINIMUM, "as few as minReplicas allows are enough", rate)
    # Without a busy instance it is sure that one can process what the fastest has processed, and no more.
    sure = rate if rate is not None else max(each.peak for each in settled)
    since = _spare_since(policy, settled, current, sure)
    stabilization = stabilization_of(policy, load.learned)
    if since is not None and load.now - since >= stabilization:
        most = max(each.arrival for each in settled)
        came = f"at most {most:.0f} records a second came in, and one instance processes {sure:.0f} a second"
        text = f"from {current} to {current - 1}, which would have done for {stabilization:g} s: {came}"
        return Verdict(current - 1, Reason.SCALED_DOWN, text + ("" if rate is not None else " or more"), rate)
    if since is not None and load.now - since >= stabilization / 2:
        text = f"{current - 1} would do; one is taken away when that is so for {stabilization:g} s"
        return Verdict(current, Reason.STABILIZING, text, rate)
    if rate is None:
        text = "no instance has had so much to do that its rate is known, so fewer might not be enough"
        return Verdict(current, Reason.RATE_UNKNOWN, text, rate)
    return Verdict(current, Reason.STEADY, f"{current} are enough, and fewer might not be", rate)


def _spare_since(policy: Policy, samples: Sequence[LoadSample], current: int, rate: float) -> float | None:
    """Since when every sample asked for fewer; None: the last one did not. None does while a backlog waits."""
    since, enough_for, interval = None, -1.0, policy.interval
    for each in reversed(samples):
        if not caught_up(each, interval):
            break
        # What is enough for a load is enough for a smaller one, and there are dozens of samples in each round.
        if each.arrival > enough_for:
            if not _spare(policy, each.arrival, current, rate):
                break
            enough_for = each.arrival
        since = each.since
    return since


def _spare(policy: Policy, demand: float, current: int, rate: float) -> bool:
    """Whether one instance fewer is enough for so many records a second, with room for what a move leaves behind."""
    fewest = needed(demand / ROOM, policy.tasks, rate)
    if fewest >= current:
        return False
    left = capacity(current - 1, policy.tasks, rate)
    return demand <= _USED * left or fewest <= current - 2 or left >= capacity(current, policy.tasks, rate)
