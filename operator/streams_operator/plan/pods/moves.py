"""Which pods to make and which to remove now."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from streams_operator.model import PodSignal, PodState, Removal
from streams_operator.names import ANNOTATION_LEAVE, LEAVING
from streams_operator.plan.pods.backoff import BETWEEN_ENDS, forgotten_at
from streams_operator.plan.pods.instances import Instance
from streams_operator.plan.pods.rolling import Rolling, rolling
from streams_operator.plan.pods.standing import Standing, ended, failing, stuck
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_operator.plan.status.message_texts import listed


@dataclass(frozen=True, slots=True)
class Leaving:
    """A pod to be removed, and why, as the end of a sentence. `force`: without waiting for its node.

    `for_good`: no other one is made in its place, so its client leaves the group.
    """

    pod: PodState
    why: str
    force: bool = False
    for_good: bool = False

    @property
    def signals(self) -> tuple[PodSignal, ...]:
        """What the pod is to know before it closes."""
        if not self.for_good or self.pod.leave_signaled or ended(self.pod):
            return ()
        return (PodSignal(self.pod.name, self.pod.uid, ANNOTATION_LEAVE, LEAVING),)

    @property
    def removal(self) -> Removal:
        """The same as the plan has it."""
        return Removal("Pod", self.pod.name, self.pod.uid, self.force)


@dataclass(frozen=True, slots=True)
class Moves:
    """What to do with pods now; `requeue_at` are the times at which there may be more to do without any event."""

    create: tuple[Instance, ...] = ()
    remove: tuple[Leaving, ...] = ()
    rolling: Rolling = field(default_factory=lambda: Rolling(None))
    requeue_at: tuple[float, ...] = ()


def closing_in_order(context: ReconcileContext, leaving: Sequence[PodState], why: str) -> tuple[Leaving, ...]:
    """The highest of `leaving`, unless a pod is closing already: each hands its tasks to those that are left."""
    going = [pod for pod in leaving if not pod.deleting]
    if not going or any(pod.deleting and not stuck(pod, context.now) for pod in context.own):
        return ()
    return (Leaving(going[-1], why, for_good=True),)


def staying(context: ReconcileContext, gone: Collection[str]) -> Iterator[PodSignal]:
    """Signals to pods that were to be removed for good, and stay; `gone` are the names of those that do not."""
    for pod in context.own:
        if pod.leave_signaled and not pod.deleting and pod.name not in gone:
            yield PodSignal(pod.name, pod.uid, ANNOTATION_LEAVE, None)


def moves(context: ReconcileContext, instances: Sequence[Instance], topics_ready: bool) -> Moves:
    """The moves of an application that is to run. No pod is made or replaced before its topics are ready."""
    wanted = [each for each in instances if each.ordinal < context.replicas]
    surplus = [pod for pod in context.own if pod.ordinal is not None and pod.ordinal >= context.replicas]
    forgets = [at for each in wanted if each.pod and (at := forgotten_at(each.account, each.pod)) is not None]
    down = closing_in_order(context, surplus, f"scaled down to {context.replicas}")
    if not topics_ready or context.digest is None:
        return Moves(remove=down, requeue_at=tuple(at for at in forgets if at > context.now))
    create, remove, requeue_at = [], list(down), forgets
    for each in wanted:
        due, why = _due(context, each)
        if due is not None and due > context.now:
            requeue_at.append(due)
        elif due is not None and each.pod is None:
            create.append(each)
        elif due is not None and each.pod is not None:
            remove.append(Leaving(each.pod, why))
    step = rolling(wanted)
    going = [pod for pod in surplus if not stuck(pod, context.now)]
    if step.next is not None and step.next.pod is not None and not remove and not going:
        news = _news(context, step.next.pod)
        whose = f"of the new {news}" if step.next.outdated else f"with the changed {listed(step.next.stale)}"
        remove.append(Leaving(step.next.pod, f"replaced by one {whose}; {len(step.left) - 1} of the old left"))
    return Moves(tuple(create), tuple(remove), step, tuple(at for at in requeue_at if at > context.now))


def _due(context: ReconcileContext, instance: Instance) -> tuple[float | None, str]:
    """From when its pod is to be made, or removed and made again; None: not at all, as things are."""
    pod, now = instance.pod, context.now
    other = pod is not None and pod.digest != context.digest
    news = "" if pod is None else _news(context, pod)
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
            what = "was to end with the application" if pod.shutdown_signaled else "never ran"
            return now, f"{what}; there is a new {news}"
        case _:
            return None, ""


def _news(context: ReconcileContext, pod: PodState) -> str:
    return "version" if pod.digest != context.digest else "restartNonce"
