"""What a round teaches the next ones: what a step cost, and that one was wrong."""

from __future__ import annotations

from dataclasses import replace

from streams_operator.application_load import Learned, Load, LoadMemory
from streams_operator.plan.scaling.replica_decision import Verdict, caught_up
from streams_operator.plan.scaling.scaling_policy import Policy, stabilization_of

_SOON = 6  # stabilizations after a step down in which one up contradicts it
_MOST_COST = 3600.0  # seconds


def memory(policy: Policy, load: Load, verdict: Verdict, current: int, quiet: bool) -> LoadMemory:
    """What the next decision may rest on: after a step, or while something is under way, no sample of this time."""
    learned = replace(load.learned, rate=verdict.rate)
    if verdict.replicas > current:
        return LoadMemory(0.0, _after_one_up(policy, load.now, learned))
    if verdict.replicas < current:
        return LoadMemory(0.0, replace(learned, stepped_at=load.now, shrunk_at=load.now, recovering=True))
    if not quiet:
        return LoadMemory(0.0, learned)
    if load.samples and learned.stepped_at is not None:
        cost = min(max(load.quiet_since - learned.stepped_at, 0.0), _MOST_COST)
        learned = replace(learned, stepped_at=None, cost=cost)
    elif load.samples and learned.recovering and caught_up(load.samples[-1], policy.interval):
        learned = replace(learned, recovering=False)
    return LoadMemory(stabilization_of(policy, learned) + policy.settling, learned)


def _after_one_up(policy: Policy, now: float, learned: Learned) -> Learned:
    """Soon after one down it shows that the load is not what it was taken for. The next one down waits twice as long,
    whatever the cause was, so that the number comes to rest.
    """
    shrunk, patience = learned.shrunk_at, learned.patience
    if shrunk is not None:
        soon = now - shrunk <= _SOON * stabilization_of(policy, learned)
        patience = 2 * patience if soon else 1
    return replace(learned, stepped_at=now, shrunk_at=None, recovering=False, patience=patience)
