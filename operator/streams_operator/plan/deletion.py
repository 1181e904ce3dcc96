"""Deleting an application: pods close in order, then the topics go if they are to, and nothing waits for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streams_operator.model import Event, KafkaWork
from streams_operator.plan.objects.document import grace_seconds
from streams_operator.plan.pods.moves import Leaving, closing_in_order
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_operator.plan.status.message_texts import EVENT_LENGTH, clipped, listed
from streams_operator.plan.topics import RECHECK_AFTER

_WHY = "the application is being deleted"
_DONE = "nothing is left to do"
_TOPICS = "deleting the internal topics"


@dataclass(frozen=True, slots=True)
class Deletion:
    """The next step. `finished`: the resource may go. `note`: what the deletion is at."""

    note: str
    finished: bool = False
    remove: Sequence[Leaving] = ()
    work: KafkaWork | None = None
    events: Sequence[Event] = ()
    requeue_at: float | None = None


def deletion(context: ReconcileContext, since: float) -> Deletion:
    """What to do next for a resource whose deletion was asked for at `since`.

    Pods close one by one until so much time is left that all others, at once, can still have their grace period before
    the deadline, which is never sooner than that. At the deadline the resource goes whatever is left, and an event
    names the topics that stay.
    """
    deadline = since + max(context.observed.defaults.delete_deadline, _grace(context))
    if context.own:
        return _pods(context, since, deadline)
    if context.observed.topics_deleted:
        deleted = Event("Normal", "InternalTopicsDeleted", "the internal topics are deleted")
        return Deletion(_DONE, True, events=(deleted,))
    return _topics(context, since, deadline) if _topics_are_to_go(context) else Deletion(_DONE, True)


def _pods(context: ReconcileContext, since: float, deadline: float) -> Deletion:
    hurry = max(deadline - _grace(context), since)
    closing = f"closing {listed([pod.name for pod in context.own])}"
    if context.now < hurry:
        return Deletion(closing, remove=closing_in_order(context, context.own, _WHY), requeue_at=hurry)
    rest = tuple(Leaving(pod, _WHY, for_good=True) for pod in context.own if not pod.deleting)
    if context.now < deadline:
        return Deletion(closing, remove=rest, requeue_at=deadline)
    return Deletion(closing, True, rest, events=_left_behind(context, "pods were still closing at the deadline"))


def _grace(context: ReconcileContext) -> int:
    """The seconds that pods have to close, also when the rest of the spec can't be read."""
    defaults = context.observed.defaults
    if context.application is not None:
        return grace_seconds(context.application, defaults)
    spec = context.observed.resource.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    given = template.get("terminationGracePeriodSeconds") if isinstance(template, Mapping) else None
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    return defaults.grace_seconds


def _topics(context: ReconcileContext, since: float, deadline: float) -> Deletion:
    if context.application is None:
        return Deletion(_DONE, True, events=_left_behind(context, "the spec is invalid"))
    found = context.observed.topics
    failure = (
        found.failure[1] if found is not None and found.failure is not None and found.checked_at >= since else None
    )
    if context.now >= deadline:
        return Deletion(_DONE, True, events=_left_behind(context, failure or "there was no time"))
    again = found.checked_at + RECHECK_AFTER if found is not None and failure is not None else context.now
    if again > context.now:
        return Deletion(_TOPICS, requeue_at=min(again, deadline))
    return Deletion(_TOPICS, work=KafkaWork("delete"), requeue_at=deadline)


def _topics_are_to_go(context: ReconcileContext) -> bool:
    spec = context.observed.resource.get("spec")
    internal = spec.get("internalTopics") if isinstance(spec, Mapping) else None
    return isinstance(internal, Mapping) and internal.get("deletionPolicy") == "Delete"


def _left_behind(context: ReconcileContext, reason: str) -> tuple[Event, ...]:
    if not _topics_are_to_go(context) or context.observed.topics_deleted:
        return ()
    found = context.observed.topics
    recorded = context.past.status.internal_topics.existing
    names = found.existing if found is not None and found.existing else recorded
    what = listed(names) if names else f"those whose names begin with {_prefix(context)}"
    text = f"internal topics stay on the brokers, remove them by hand: {what} ({reason})"
    return (Event("Warning", "InternalTopicsLeft", clipped(text, EVENT_LENGTH)),)


def _prefix(context: ReconcileContext) -> str:
    given = (context.observed.resource.get("spec") or {}).get("applicationId")
    return f"{given or context.identity.name}-"
