"""Internal topics first: whether pods may be made, what to do at the brokers, and what status says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streams_operator.model import InitResult, KafkaWork, TopicsState
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_operator.plan.status.message_texts import listed
from streams_runtime.api.status.resource_status import InitStatus, InternalTopicsStatus

WHOLE_SECOND = 1.0
"""Seconds by which something happened later than the API server's times say, at most: they have no fractions."""
RECHECK_AFTER = 10.0
"""Seconds between two checks of the brokers while something is missing."""
RECHECK_READY_AFTER = 900.0
"""Seconds between two checks while all is well: running clients notice a missing topic themselves in seconds, and say
so. A check costs some ten milliseconds of a processor, which a thousand idle applications add up to."""

UNREACHABLE = "BrokerNotAvailable"
_KNOWN_FROM_BROKERS = frozenset(
    {"MissingSourceTopics", "MissingInternalTopics", "MisconfiguredInternalTopics", "Topology"}
)
"""Failures that say what the brokers have; after any other one nobody knows."""
_ABOUT_TOPICS = frozenset(
    {"MissingInternalTopicException", "MisconfiguredInternalTopicException", "MissingSourceTopicException"}
)
SET_UP = ("Created", "AlreadySetUp")
"""The results of an explicit init() after which all topics are there."""

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class TopicsVerdict:
    """`ready`: the brokers have all of them. `condition`: (status, reason, message) of InternalTopicsReady; None: leave
    it.

    `shown` is status.internalTopics, `tasks` the number of the application's tasks. `work` is to be done at the brokers
    now, or else from `requeue_at` on.
    """

    ready: bool
    condition: tuple[Status, str, str] | None
    shown: InternalTopicsStatus
    tasks: int | None
    work: KafkaWork | None = None
    requeue_at: float | None = None


def topics(context: ReconcileContext) -> TopicsVerdict:
    """What the internal topics are and need."""
    # What nobody asks for any more, or nobody understands, stays in status as it was.
    asked = context.application is not None and context.deleted_at is None
    found, past = context.observed.topics if asked else None, context.past.status.internal_topics
    init = _init(context)
    condition = _condition(context, found, init) if found is not None else None
    if condition is None and not context.past.condition("InternalTopicsReady")[0]:
        condition = ("Unknown", "NotChecked", "nobody has looked at the brokers yet")
    carried_out = init or context.past.init
    shown = InternalTopicsStatus(
        setup=_setup(condition) if condition is not None else past.setup or "NotChecked",
        existing=list(found.existing) if found is not None else past.existing,
        missing=list(found.missing) if found is not None else past.missing,
        init=_init_status(carried_out) if carried_out is not None else None,
    )
    tasks = found.tasks if found is not None and found.tasks is not None else context.past.status.tasks
    work, due = _work(context, found, init)
    return TopicsVerdict(
        ready=found is not None and found.ready,
        condition=condition,
        shown=shown,
        tasks=tasks,
        work=work if work is not None and due <= context.now else None,
        requeue_at=due if work is not None and due > context.now else None,
    )


def _init_status(result: InitResult) -> InitStatus:
    return InitStatus(nonce=result.nonce, result=result.result, message=result.message)


def _init(context: ReconcileContext) -> InitResult | None:
    """A result that status does not have yet. An init() that no broker answered has not been carried out."""
    init, done = context.observed.init, context.past.init_nonce
    if init is None or init.result == UNREACHABLE or (done is not None and init.nonce <= done):
        return None
    return init


def _pending(context: ReconcileContext, init: InitResult | None) -> int | None:
    """The nonce of an explicit init() that is asked for and was not carried out."""
    if context.application is None or context.application.spec.internal_topics.setup != "manual":
        return None
    asked = context.application.spec.internal_topics.init
    done = init.nonce if init is not None else context.past.init_nonce
    return asked.nonce if asked is not None and (done is None or asked.nonce > done) else None


def _work(
    context: ReconcileContext, found: TopicsState | None, init: InitResult | None
) -> tuple[KafkaWork | None, float]:
    """What is to be done next at the brokers, and from when on."""
    application = context.application
    if application is None:
        return None, 0.0
    pending = _pending(context, init)
    if pending is not None and found is not None and (found.failure is None or found.failure[0] in _KNOWN_FROM_BROKERS):
        return KafkaWork("init", pending), context.now
    if context.suspended and pending is None:
        return None, 0.0
    automatic = application.spec.internal_topics.setup == "automatic"
    return KafkaWork("setup" if automatic else "check"), _check_due(context, found)


def _check_due(context: ReconcileContext, found: TopicsState | None) -> float:
    if found is None:
        return context.now
    if not found.ready:
        return found.checked_at + RECHECK_AFTER
    for pod in context.own:
        # The second in which it ended may have been the one of the check.
        since = (pod.ended_at or 0.0) + WHOLE_SECOND
        if pod.error is not None and pod.error[0] in _ABOUT_TOPICS and since > found.checked_at:
            return context.now
    return found.checked_at + RECHECK_READY_AFTER


def _setup(condition: tuple[Status, str, str]) -> str:
    return "Ready" if condition[0] == "True" else condition[1]


def _condition(context: ReconcileContext, found: TopicsState, init: InitResult | None) -> tuple[Status, str, str]:
    if found.ready:
        return "True", "Ready", f"all {len(found.existing)} internal topics are there and fit"
    if found.failure is not None and not (found.missing and found.failure[0] == "MissingInternalTopics"):
        return (
            "Unknown" if found.failure[0] == UNREACHABLE else "False",
            found.failure[0] or "Unknown",
            found.failure[1],
        )
    manual = context.application is not None and context.application.spec.internal_topics.setup == "manual"
    if not manual:
        missing = f"missing: {listed(found.missing)}"
        return (
            "False",
            "MissingInternalTopics",
            found.failure[1] if found.failure else f"{missing}. They are being made",
        )
    number = 1 + max((n for n in (context.past.init_nonce, init.nonce if init else None) if n is not None), default=0)
    remedy = f"set spec.internalTopics.init.nonce to {number} or more"
    pending = _pending(context, init)
    if pending is not None:
        remedy = f"the init() of nonce {pending} is under way"
    if not found.existing:
        return "False", "InitRequired", f"none of the internal topics exists ({listed(found.missing)}); {remedy}"
    result = _last_result(context, init)
    text = f"missing: {listed(found.missing)}. {result}Find out who deleted them; then {remedy}"
    if pending is None:
        text += ", with setupRepartitionTopicsIfIncomplete or setupChangelogTopicsIfIncomplete for those that"
        text += " may begin empty"
    return "False", "MissingInternalTopics", text


def _last_result(context: ReconcileContext, init: InitResult | None) -> str:
    """What the last init() came to, when it did not come to what was asked."""
    last = init or context.past.init
    if last is None or last.result in SET_UP:
        return ""
    return f"init() of nonce {last.nonce} made nothing: {last.message.rstrip('. ')}. "
