"""The next step of a reset, from what is asked for, what is on record and what brokers and cluster show.

Everything that speaks against a reset is found before its first step. From then on it is Running in the status, with
all that it has to do: it is carried to its end whatever becomes of spec.reset and spec.suspend, and each of its steps
may be done again. Topics that are missing meanwhile are missing by the reset; those that are missing later were lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from streams_operator.model import KafkaWork, Removal, ResetAnswer
from streams_operator.plan.reconcile_context import ReconcileContext
from streams_operator.plan.reset.reset_record import (
    DONE,
    DRY_RUN,
    OFFSETS,
    PENDING,
    REFUSED,
    RUNNING,
    TOPICS,
    VOLUMES,
    ResetRecord,
    record_of,
    request_of,
)
from streams_operator.plan.reset.reset_words import LENGTH, does, has, would
from streams_operator.plan.status.message_texts import clipped, listed
from streams_operator.plan.status.past import Wait
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.api.status.reset_status import ResetStatus
from streams_runtime.topics.reset.reset_plan import ResetOutlook
from streams_runtime.topics.reset.reset_plan import listed as few

ASK_AGAIN_AFTER = 10.0
"""Seconds until the brokers are asked again, or a step that failed is tried again."""
_FRESH = 120.0
"""Seconds for which a reset may rest on what the brokers said."""
_SUSPEND = "set spec.suspend to true, and give spec.reset a greater nonce"
_CLAIM = "PersistentVolumeClaim"


@dataclass(frozen=True, slots=True)
class ResetVerdict:
    """`shown` is status.reset. `work` is to be done at the brokers now; at `requeue_at` there is more to do.

    `running`: nothing else is to be made or done at the brokers. `wait`: how long it has waited for others, or gone on.
    `refused`: the reset that spec.reset asks for, and is no dry run, was refused.
    """

    shown: ResetStatus | None = None
    running: bool = False
    work: KafkaWork | None = None
    remove: tuple[Removal, ...] = ()
    requeue_at: float | None = None
    wait: Wait | None = None
    refused: bool = False

    @property
    def pending(self) -> bool:
        """Whether it waits for something before its first step."""
        return self.shown is not None and self.shown.state == PENDING

    @property
    def begun(self) -> bool:
        """Whether it has begun and is not whole."""
        return self.shown is not None and self.shown.state == RUNNING

    @property
    def under_way(self) -> bool:
        """Whether it is at something, or waits for something."""
        return self.begun or self.pending

    @property
    def title(self) -> str:
        """The reset, for a message."""
        return f"the reset of nonce {self.shown.nonce}" if self.shown is not None else ""


def reset(context: ReconcileContext) -> ResetVerdict:
    """What to do now about spec.reset."""
    found = _next(context)
    return replace(found, refused=True) if _stands_refused(context, found.shown) else found


def _stands_refused(context: ReconcileContext, shown: ResetStatus | None) -> bool:
    """A dry run that says why it can't be has done what it was for."""
    asked = context.application.spec.reset if context.application is not None else None
    if shown is None or shown.state != REFUSED or asked is None or asked.dry_run:
        return False
    return (shown.nonce, shown.request) == (asked.nonce, request_of(asked))


def _next(context: ReconcileContext) -> ResetVerdict:
    shown = context.past.status.reset
    if context.application is None or context.deleted_at is not None or context.on_hold:
        return ResetVerdict(shown)
    record, asked = record_of(shown), context.application.spec.reset
    if record is not None and record.state == RUNNING:
        return _going_on(context, record)
    if asked is None and record is not None and record.state == PENDING:
        return _ended(context, record, REFUSED, "nothing was changed, as spec.reset was taken out before it began")
    if asked is None or not _news(asked, record):
        return ResetVerdict(_with_change(asked, record) or shown)
    request = request_of(asked)
    same = record is not None and record.state == PENDING and record.request == request
    since = record.started_at if record is not None and same else context.now
    fresh = ResetRecord(asked.nonce, request, PENDING, started_at=since, internal_topics=asked.internal_topics)
    return _asked(context, asked, fresh)


def _news(asked: ResetSpec, record: ResetRecord | None) -> bool:
    """Whether what is asked for has not been answered. A nonce is used up by a reset that was carried out."""
    if record is None or record.state == PENDING:
        return True
    if record.state == DONE:
        return asked.nonce > record.nonce
    return asked.nonce >= record.nonce and request_of(asked) != record.request


def _with_change(asked: ResetSpec | None, record: ResetRecord | None) -> ResetStatus | None:
    """Of a reset that is done, whether its spec is another one now, which does nothing without a greater nonce."""
    if record is None or record.state != DONE or asked is None or asked.nonce != record.nonce:
        return None
    changed = "" if request_of(asked) == record.request else "; spec.reset has changed, and its nonce is not greater"
    return replace(record, message=f"{has(record)}{changed}").status


def _asked(context: ReconcileContext, asked: ResetSpec, record: ResetRecord) -> ResetVerdict:
    """A reset that has not begun."""
    if not asked.dry_run and not context.suspended:
        text = f"nothing was changed, as the application is not suspended: {_SUSPEND}"
        return _ended(context, record, REFUSED, text)
    if not asked.dry_run and context.own:
        return _pending(record, f"waits for {listed([pod.name for pod in context.own])} to close")
    answer, work = context.observed.reset, KafkaWork("reset-check", asked.nonce, record.request, asked)
    if answer is None or not _answers(answer, "reset-check", record.request):
        return _asking(context, record, work)
    if answer.outlook is None or (answer.outlook.members and answer.outlook.plan and not asked.dry_run):
        due = answer.at + ASK_AGAIN_AFTER
        text = _members(context, answer.outlook) if answer.outlook else answer.failure[1] if answer.failure else ""
        found = _pending(record, text, work if due <= context.now else None)
        return replace(found, requeue_at=due if due > context.now else None)
    if context.now - answer.at > _FRESH:
        return _asking(context, record, work)
    return _decided(context, asked, record, answer.outlook)


def _decided(context: ReconcileContext, asked: ResetSpec, record: ResetRecord, outlook: ResetOutlook) -> ResetVerdict:
    """The brokers have said what speaks against it, and what it would do."""
    if outlook.plan is None:
        return _ended(context, record, REFUSED, f"nothing was changed: {'; '.join(outlook.refusals)}")
    volumes = tuple(claim.name for claim in _claims(context)) if record.deletes else ()
    planned = replace(record, topics=outlook.plan.topics, moves=outlook.plan.moves, volumes=volumes)
    if asked.dry_run:
        return _ended(context, planned, DRY_RUN, f"{would(planned)}{_before_that(context, outlook)}")
    step = TOPICS if planned.deletes else OFFSETS
    return _going_on(context, replace(planned, state=RUNNING, step=step, started_at=context.now))


def _before_that(context: ReconcileContext, outlook: ResetOutlook) -> str:
    """What a dry run finds that would have to change first."""
    if not context.suspended:
        return "; the application has to be suspended first: spec.suspend: true"
    return f"; {_members(context, outlook)}" if outlook.members else ""


def _members(context: ReconcileContext, outlook: ResetOutlook) -> str:
    group = context.application.application_id if context.application is not None else ""
    return (
        f"the group {group} has members: {few(outlook.members)}. Stop them; one that was killed goes by itself when its"
        " session has ended"
    )


def _going_on(context: ReconcileContext, record: ResetRecord) -> ResetVerdict:
    """A reset that has begun: its step, or the one behind it."""
    answer = context.observed.reset
    if record.step == TOPICS:
        if not _succeeded(answer, "reset-topics", record):
            return _at_brokers(context, record, KafkaWork("reset-topics", record.nonce, record.request))
        record = replace(record, step=OFFSETS)
    if record.step == OFFSETS:
        work = KafkaWork("reset-offsets", record.nonce, record.request, moves=record.moves)
        if record.moves and not _succeeded(answer, "reset-offsets", record):
            return _at_brokers(context, record, work)
        record = replace(record, step=VOLUMES)
    claims = tuple(_claims(context)) if record.deletes else ()
    if claims:
        remove = tuple(each.removal for each in claims if not each.going)
        return _running(record, does(record), remove=remove)
    return _ended(context, record, DONE, has(record))


def _at_brokers(context: ReconcileContext, record: ResetRecord, work: KafkaWork) -> ResetVerdict:
    answer = context.observed.reset
    if not _answers(answer, work.kind, record.request) or answer is None or answer.failure is None:
        return _running(record, does(record), work)
    due = answer.at + ASK_AGAIN_AFTER
    text = f"{does(record)}: {answer.failure[1]}"
    if due > context.now:
        return _running(record, text, requeue_at=due)
    return _running(record, text, work)


def _answers(answer: ResetAnswer | None, step: str, request: str) -> bool:
    return answer is not None and (answer.step, answer.request) == (step, request)


def _succeeded(answer: ResetAnswer | None, step: str, record: ResetRecord) -> bool:
    """Whether this reset's step was done: an answer of before is another one's, whose status somebody has removed."""
    if answer is None or not _answers(answer, step, record.request):
        return False
    return answer.failure is None and answer.at >= record.started_at


def _running(
    record: ResetRecord,
    text: str,
    work: KafkaWork | None = None,
    remove: tuple[Removal, ...] = (),
    requeue_at: float | None = None,
) -> ResetVerdict:
    shown = replace(record, message=clipped(text, LENGTH)).status
    return ResetVerdict(shown, True, work, remove, requeue_at, Wait(record.started_at))


def _pending(record: ResetRecord, text: str, work: KafkaWork | None = None) -> ResetVerdict:
    shown = replace(record, message=clipped(text, LENGTH)).status
    return ResetVerdict(shown, work=work, wait=Wait(record.started_at))


def _asking(context: ReconcileContext, record: ResetRecord, work: KafkaWork) -> ResetVerdict:
    return replace(_pending(record, "asks the brokers", work), requeue_at=context.now + ASK_AGAIN_AFTER)


def _ended(context: ReconcileContext, record: ResetRecord, state: str, text: str) -> ResetVerdict:
    ended = replace(record, state=state, step="", message=clipped(text, LENGTH), ended_at=context.now)
    return ResetVerdict(ended.status, requeue_at=context.now)


@dataclass(frozen=True, slots=True)
class _Claim:
    name: str
    uid: str
    going: bool

    @property
    def removal(self) -> Removal:
        return Removal(_CLAIM, self.name, self.uid)


def _claims(context: ReconcileContext) -> Iterator[_Claim]:
    """The claims that keep the application's state; one that is somebody else's is not touched."""
    ours = re.compile(rf"state-{re.escape(context.identity.name)}-[0-9]+")
    for (kind, name), found in sorted(context.observed.objects.items(), key=lambda item: item[0]):
        metadata = found["metadata"]
        owners = {owner.get("uid") for owner in metadata.get("ownerReferences") or ()}
        if kind == _CLAIM and ours.fullmatch(name) and context.identity.uid in owners:
            yield _Claim(name, metadata["uid"], metadata.get("deletionTimestamp") is not None)
