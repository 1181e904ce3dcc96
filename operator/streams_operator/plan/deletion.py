"""Deleting an application: pods close in order, then the topics go if they are to, and nothing waits for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streams_operator.model import Happening, KafkaWork
from streams_operator.plan.case import Case
from streams_operator.plan.moves import Leaving, closing_in_order
from streams_operator.plan.objects.document import grace_seconds
from streams_operator.plan.topics import LOOK_AGAIN
from streams_operator.plan.words import EVENT_LENGTH, clipped, listed

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
    events: Sequence[Happening] = ()
    wake: float | None = None


def deletion(case: Case, since: float) -> Deletion:
    """What to do next for a resource whose deletion was asked for at `since`.

    Pods close one by one until so much time is left that all others, at once, can still have their grace period before
    the deadline, which is never sooner than that. At the deadline the resource goes whatever is left, and an event
    names the topics that stay.
    """
    deadline = since + max(case.observed.defaults.delete_deadline, _grace(case))
    if case.own:
        return _pods(case, since, deadline)
    if case.observed.topics_deleted:
        deleted = Happening("Normal", "InternalTopicsDeleted", "the internal topics are deleted")
        return Deletion(_DONE, True, events=(deleted,))
    return _topics(case, since, deadline) if _topics_are_to_go(case) else Deletion(_DONE, True)


def _pods(case: Case, since: float, deadline: float) -> Deletion:
    hurry = max(deadline - _grace(case), since)
    closing = f"closing {listed([pod.name for pod in case.own])}"
    if case.now < hurry:
        return Deletion(closing, remove=closing_in_order(case, case.own, _WHY), wake=hurry)
    rest = tuple(Leaving(pod, _WHY) for pod in case.own if not pod.deleting)
    if case.now < deadline:
        return Deletion(closing, remove=rest, wake=deadline)
    return Deletion(closing, True, rest, events=_left_behind(case, "pods were still closing at the deadline"))


def _grace(case: Case) -> int:
    """The seconds that pods have to close, also when the rest of the spec can't be read."""
    defaults = case.observed.defaults
    if case.application is not None:
        return grace_seconds(case.application, defaults)
    spec = case.observed.resource.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    given = template.get("terminationGracePeriodSeconds") if isinstance(template, Mapping) else None
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    return defaults.grace_seconds


def _topics(case: Case, since: float, deadline: float) -> Deletion:
    if case.application is None:
        return Deletion(_DONE, True, events=_left_behind(case, "the spec is invalid"))
    seen = case.observed.topics
    failure = seen.failure[1] if seen is not None and seen.failure is not None and seen.checked_at >= since else None
    if case.now >= deadline:
        return Deletion(_DONE, True, events=_left_behind(case, failure or "there was no time"))
    again = seen.checked_at + LOOK_AGAIN if seen is not None and failure is not None else case.now
    if again > case.now:
        return Deletion(_TOPICS, wake=min(again, deadline))
    return Deletion(_TOPICS, work=KafkaWork("delete"), wake=deadline)


def _topics_are_to_go(case: Case) -> bool:
    spec = case.observed.resource.get("spec")
    internal = spec.get("internalTopics") if isinstance(spec, Mapping) else None
    return isinstance(internal, Mapping) and internal.get("deletionPolicy") == "Delete"


def _left_behind(case: Case, reason: str) -> tuple[Happening, ...]:
    if not _topics_are_to_go(case) or case.observed.topics_deleted:
        return ()
    seen = case.observed.topics
    names = seen.existing if seen is not None and seen.existing else tuple(case.past.topic_names("existing"))
    what = listed(names) if names else f"those whose names begin with {_prefix(case)}"
    text = f"internal topics stay on the brokers, remove them by hand: {what} ({reason})"
    return (Happening("Warning", "InternalTopicsLeft", clipped(text, EVENT_LENGTH)),)


def _prefix(case: Case) -> str:
    given = (case.observed.resource.get("spec") or {}).get("applicationId")
    return f"{given or case.identity.name}-"
