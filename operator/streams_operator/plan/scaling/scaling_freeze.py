"""What keeps an application's number of instances as it is, whatever the load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streams_operator import names
from streams_operator.plan.decision import Decision, Phase
from streams_operator.plan.pods.instances import Instance
from streams_operator.plan.pods.standing import Standing, serving

_STALE = 90.0  # seconds without a sample after which nobody knows the load
_STANDBY_LAG = 10_000  # records; Kafka Streams' acceptable.recovery.lag
_STANDBY_SECONDS = 10.0  # of the application's own rate; as much may be under way in a fast one

_MOVING = (Standing.ABSENT, Standing.NEW, Standing.CLOSING)
_AWAY = (Standing.STUCK, Standing.CRASHED, Standing.DONE)


class Freeze(NamedTuple):
    """Why the number stays. `notable`: an event says so, as it is not part of daily business.

    `new_rate`: what an instance processed is no longer what one will process.
    """

    reason: str
    message: str
    notable: bool = False
    new_rate: bool = False


def frozen(decision: Decision) -> Freeze | None:
    """The first reason of those that hold; None: the load decides."""
    return next(_asked_for(decision), None) or next(_wrong(decision), None) or next(_under_way(decision), None)


def _asked_for(decision: Decision) -> Iterator[Freeze]:
    context = decision.context
    if decision.phase is Phase.HOLD:
        yield Freeze("ReconciliationPaused", f"nothing is changed while {names.ANNOTATION_HOLD} is true")
    if decision.phase is Phase.SUSPEND:
        yield Freeze("Suspended", "spec.suspend is true")
    if context.paused or any(pod.paused for pod in context.own):
        yield Freeze("Paused", "instances process nothing, as spec.paused is or was true")


def _wrong(decision: Decision) -> Iterator[Freeze]:
    context = decision.context
    if any(each.error is not None for each in decision.instances):
        yield Freeze("InError", "a client is in ERROR; Degraded says why, and what to do", notable=True)
    if context.observed.rolled_back:
        yield Freeze("RolledBack", "a version was given up; Degraded says why, and what to do", notable=True)
    if context.observed.topics is not None and not decision.topics.ready:
        yield Freeze("WaitingForTopics", "the internal topics are not ready; InternalTopicsReady says why")


def _under_way(decision: Decision) -> Iterator[Freeze]:
    instances, accounts = decision.instances, decision.context.observed.accounts.values()
    if any(each.pod is not None and (each.outdated or each.stale) for each in instances):
        yield Freeze("RollingOut", "instances are replaced, and the new ones have to be measured", new_rate=True)
    if decision.moves.remove or any(each.standing in _MOVING for each in instances) or _surplus(decision):
        yield Freeze("Moving", "instances start or close, and tasks move")
    if any(each.standing in _AWAY for each in instances):
        yield Freeze("PodsNotReady", "an instance crashed, or does not go; Degraded says which", notable=True)
    if any(each.records_left for each in accounts) or not all(map(_restored, instances)):
        yield Freeze("Restoring", "stores are restored from Kafka")
    if not all(each.pod is not None and serving(each.pod) for each in instances):
        yield Freeze("PodsNotReady", "an instance is not RUNNING and ready; Ready and Progressing say which")
    if _warming(decision):
        yield Freeze("StandbysWarmingUp", "standby replicas are far behind the stores that they follow")
    load = decision.context.observed.load
    if load.now - load.heard > _STALE:
        yield Freeze("LagUnknown", "an instance does not say how far it is, so nobody knows the load", notable=True)


def _surplus(decision: Decision) -> bool:
    return any(each.ordinal >= decision.context.replicas for each in decision.instances)


def _restored(instance: Instance) -> bool:
    return instance.pod is not None and instance.pod.restored


def _warming(decision: Decision) -> bool:
    observed = decision.context.observed
    found = [each.standby_lag for each in observed.accounts.values()]
    under_way = _STANDBY_SECONDS * (observed.load.learned.rate or 0.0) * len(decision.instances)
    return None in found or sum(each for each in found if each is not None) > max(_STANDBY_LAG, under_way)
