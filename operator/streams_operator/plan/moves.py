"""Which pods to make and which to remove now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from streams_operator.model import PodSeen, Removal
from streams_operator.plan.backoff import BETWEEN_ENDS, forgotten_at
from streams_operator.plan.case import Case
from streams_operator.plan.instances import Instance
from streams_operator.plan.rolling import Rolling, rolling
from streams_operator.plan.standing import Standing, failing, stuck
from streams_operator.plan.words import listed


@dataclass(frozen=True, slots=True)
class Leaving:
    """A pod to be removed, and why, as the end of a sentence. `force`: without waiting for its node."""

    pod: PodSeen
    why: str
    force: bool = False

    @property
    def removal(self) -> Removal:
        """The same as the plan has it."""
        return Removal("Pod", self.pod.name, self.pod.uid, self.force)


@dataclass(frozen=True, slots=True)
class Moves:
    """What to do with pods now; `wake` are the times at which there may be more to do without anything happening."""

    create: tuple[Instance, ...] = ()
    remove: tuple[Leaving, ...] = ()
    rolling: Rolling = field(default_factory=lambda: Rolling(None))
    wake: tuple[float, ...] = ()


def closing_in_order(case: Case, leaving: Sequence[PodSeen], why: str) -> tuple[Leaving, ...]:
    """The highest of `leaving`, unless a pod is closing already: each hands its tasks to those that are left."""
    going = [pod for pod in leaving if not pod.deleting]
    if not going or any(pod.deleting and not stuck(pod, case.now) for pod in case.own):
        return ()
    return (Leaving(going[-1], why),)


def moves(case: Case, instances: Sequence[Instance], topics_ready: bool) -> Moves:
    """The moves of an application that is to run. No pod is made or replaced before its topics are ready."""
    wanted = [each for each in instances if each.ordinal < case.replicas]
    surplus = [pod for pod in case.own if pod.ordinal is not None and pod.ordinal >= case.replicas]
    forgets = [at for each in wanted if each.pod and (at := forgotten_at(each.account, each.pod)) is not None]
    down = closing_in_order(case, surplus, f"scaled down to {case.replicas}")
    if not topics_ready or case.digest is None:
        return Moves(remove=down, wake=tuple(at for at in forgets if at > case.now))
    create, remove, wake = [], list(down), forgets
    for each in wanted:
        due, why = _due(case, each)
        if due is not None and due > case.now:
            wake.append(due)
        elif due is not None and each.pod is None:
            create.append(each)
        elif due is not None and each.pod is not None:
            remove.append(Leaving(each.pod, why))
    step = rolling(wanted)
    going = [pod for pod in surplus if not stuck(pod, case.now)]
    if step.next is not None and step.next.pod is not None and not remove and not going:
        news = _news(case, step.next.pod)
        whose = f"of the new {news}" if step.next.outdated else f"with the changed {listed(step.next.stale)}"
        remove.append(Leaving(step.next.pod, f"replaced by one {whose}; {len(step.left) - 1} of the old left"))
    return Moves(tuple(create), tuple(remove), step, tuple(at for at in wake if at > case.now))


def _due(case: Case, instance: Instance) -> tuple[float | None, str]:
    """From when its pod is to be made, or removed and made again; None: not at all, as things are."""
    pod, now = instance.pod, case.now
    other = pod is not None and pod.digest != case.digest
    news = "" if pod is None else _news(case, pod)
    match instance.standing:
        case Standing.ABSENT:
            return instance.account.until or now, ""
        case Standing.ERROR if instance.outdated:
            return now, f"ended in ERROR; there is a new {news}"
        case Standing.CRASHED:
            return now if instance.outdated else instance.account.until or now, "crashed; it is made again"
        case Standing.DONE if pod is not None:
            return now if other else pod.created_at + BETWEEN_ENDS, "ended in order, unasked; it is made again"
        case Standing.FAILING | Standing.NEW if pod is not None and not failing(pod) and instance.outdated:
            what = "was to end with the application" if pod.told else "never ran"
            return now, f"{what}; there is a new {news}"
        case _:
            return None, ""


def _news(case: Case, pod: PodSeen) -> str:
    return "version" if pod.digest != case.digest else "restartNonce"
