"""Internal topics first: whether pods may be made, what to do at the brokers, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from streams_operator.model import InitResult, KafkaWork, TopicsSeen
from streams_operator.plan.case import Case
from streams_operator.plan.words import listed

WHOLE_SECOND = 1.0
"""Seconds by which something happened later than the API server's times say, at most: they have no fractions."""
LOOK_AGAIN = 10.0
"""Seconds between two looks at the brokers while something is missing."""
LOOK_WHEN_READY = 300.0
"""Seconds between two looks while all is well: running clients notice a missing topic themselves, and say so."""

UNREACHABLE = "BrokerNotAvailable"
_ANSWERS = frozenset({"MissingSourceTopics", "MissingInternalTopics", "MisconfiguredInternalTopics", "Topology"})
"""Failures that say what the brokers have; after any other one nobody knows."""
_ABOUT_TOPICS = frozenset(
    {"MissingInternalTopicException", "MisconfiguredInternalTopicException", "MissingSourceTopicException"}
)
SET_UP = ("Created", "AlreadySetUp")
"""The results of an explicit init() after which all topics are there."""

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class TopicsVerdict:
    """`ready`: seen to be ready, now. `condition`: (status, reason, message) of InternalTopicsReady; None: leave it.

    `shown` is status.internalTopics, `tasks` the number of the application's tasks. `work` is to be done at the brokers
    now, or else from `wake` on.
    """

    ready: bool
    condition: tuple[Status, str, str] | None
    shown: dict[str, Any]
    tasks: int | None
    work: KafkaWork | None = None
    wake: float | None = None


def topics(case: Case) -> TopicsVerdict:
    """What the internal topics are and need."""
    # What nobody asks for any more, or nobody understands, stays told as it was.
    asked = case.application is not None and case.deleted_at is None
    seen, past = case.observed.topics if asked else None, case.past.topics
    init = _init(case)
    condition = _condition(case, seen, init) if seen is not None else None
    if condition is None and not case.past.condition("InternalTopicsReady")[0]:
        condition = ("Unknown", "NotChecked", "nobody has looked at the brokers yet")
    shown: dict[str, Any] = {
        "setup": _setup(condition) if condition is not None else str(past.get("setup", "NotChecked")),
        "existing": list(seen.existing) if seen is not None else case.past.topic_names("existing"),
        "missing": list(seen.missing) if seen is not None else case.past.topic_names("missing"),
    }
    carried_out = init or case.past.init
    if carried_out is not None:
        shown["init"] = {
            "nonce": carried_out.nonce,
            "result": carried_out.result,
            "message": carried_out.message,
        }
    tasks = seen.tasks if seen is not None and seen.tasks is not None else case.past.status.get("tasks")
    work, due = _work(case, seen, init)
    return TopicsVerdict(
        ready=seen is not None and seen.ready,
        condition=condition,
        shown=shown,
        tasks=tasks if isinstance(tasks, int) else None,
        work=work if work is not None and due <= case.now else None,
        wake=due if work is not None and due > case.now else None,
    )


def _init(case: Case) -> InitResult | None:
    """A result that status does not have yet. An init() that no broker answered has not been carried out."""
    init, done = case.observed.init, case.past.init_nonce
    if init is None or init.result == UNREACHABLE or (done is not None and init.nonce <= done):
        return None
    return init


def _pending(case: Case, init: InitResult | None) -> int | None:
    """The nonce of an explicit init() that is asked for and was not carried out."""
    if case.application is None or case.application.spec.internal_topics.setup != "manual":
        return None
    asked = case.application.spec.internal_topics.init
    done = init.nonce if init is not None else case.past.init_nonce
    return asked.nonce if asked is not None and (done is None or asked.nonce > done) else None


def _work(case: Case, seen: TopicsSeen | None, init: InitResult | None) -> tuple[KafkaWork | None, float]:
    """What is to be done next at the brokers, and from when on."""
    application = case.application
    if application is None:
        return None, 0.0
    pending = _pending(case, init)
    if pending is not None and seen is not None and (seen.failure is None or seen.failure[0] in _ANSWERS):
        return KafkaWork("init", pending), case.now
    if case.suspended and pending is None:
        return None, 0.0
    automatic = application.spec.internal_topics.setup == "automatic"
    return KafkaWork("setup" if automatic else "check"), _look_at(case, seen)


def _look_at(case: Case, seen: TopicsSeen | None) -> float:
    if seen is None:
        return case.now
    if not seen.ready:
        return seen.checked_at + LOOK_AGAIN
    for pod in case.own:
        # The second in which it ended may have been the one of the look.
        since = (pod.ended_at or 0.0) + WHOLE_SECOND
        if pod.error is not None and pod.error[0] in _ABOUT_TOPICS and since > seen.checked_at:
            return case.now
    return seen.checked_at + LOOK_WHEN_READY


def _setup(condition: tuple[Status, str, str]) -> str:
    return "Ready" if condition[0] == "True" else condition[1]


def _condition(case: Case, seen: TopicsSeen, init: InitResult | None) -> tuple[Status, str, str]:
    if seen.ready:
        return "True", "Ready", f"all {len(seen.existing)} internal topics are there and fit"
    if seen.failure is not None and not (seen.missing and seen.failure[0] == "MissingInternalTopics"):
        return "Unknown" if seen.failure[0] == UNREACHABLE else "False", seen.failure[0] or "Unknown", seen.failure[1]
    manual = case.application is not None and case.application.spec.internal_topics.setup == "manual"
    if not manual:
        missing = f"missing: {listed(seen.missing)}"
        return "False", "MissingInternalTopics", seen.failure[1] if seen.failure else f"{missing}. They are being made"
    number = 1 + max((n for n in (case.past.init_nonce, init.nonce if init else None) if n is not None), default=0)
    remedy = f"set spec.internalTopics.init.nonce to {number} or more"
    pending = _pending(case, init)
    if pending is not None:
        remedy = f"the init() of nonce {pending} is under way"
    if not seen.existing:
        return "False", "InitRequired", f"none of the internal topics exists ({listed(seen.missing)}); {remedy}"
    result = _last_result(case, init)
    text = f"missing: {listed(seen.missing)}. {result}Find out who deleted them; then {remedy}"
    if pending is None:
        text += ", with setupRepartitionTopicsIfIncomplete or setupChangelogTopicsIfIncomplete for those that"
        text += " may begin empty"
    return "False", "MissingInternalTopics", text


def _last_result(case: Case, init: InitResult | None) -> str:
    """What the last init() came to, when it did not come to what was asked."""
    last = init or case.past.init
    if last is None or last.result in SET_UP:
        return ""
    return f"init() of nonce {last.nonce} made nothing: {last.message.rstrip('. ')}. "
