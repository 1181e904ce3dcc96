"""`spec.rollback: automatic`: a new version that does not arrive is given up for the last stable one.

Only the deadline gives a version up. A client in ERROR waits for a person, as everywhere; and what has run with other
topics is not given up, since its records would be left half processed in them.
"""

from __future__ import annotations

from streams_operator.plan.decision import Decision, Phase
from streams_operator.plan.pods.progress import overdue
from streams_operator.plan.pods.rolling import arrived
from streams_operator.plan.status.holdup import holdup
from streams_operator.plan.status.message_texts import clipped, listed
from streams_operator.plan.status.past import RolledBack
from streams_operator.plan.status.times import text_of
from streams_runtime.api.status.resource_status import RolledBackStatus
from streams_runtime.states import ClientState

ROLLED_BACK = "RolledBack"
"""Reason of Degraded, of Progressing, and of the event."""
ROLLBACK_REFUSED = "RollbackRefused"
"""Reason of Degraded and of the event."""

_SHOWN = 3  # late instances of which the cause is recorded
_WHY_LENGTH = 2_000  # bytes


def given_up(decision: Decision) -> RolledBack | None:
    """The version that is given up now, or was before and stays so."""
    context = decision.context
    # A resource that is invalid asks for no other version.
    if context.observed.rolled_back or decision.phase is Phase.INVALID:
        return context.past.rolled_back
    target = context.observed.rollback_target
    if target is None or context.digest is None or refusal(decision) is not None or not _too_late(decision):
        return None
    generation = context.metadata.get("generation", 0)
    return RolledBack(context.digest, target.version, generation, context.nonce, context.now, _why(decision))


def refusal(decision: Decision) -> str | None:
    """Why a version that comes too late stays all the same; None: it does not, or nothing speaks against it."""
    context, target = decision.context, decision.context.observed.rollback_target
    if target is None or not _too_late(decision):
        return None
    if target.obstacle:
        return f"{target.version}, the last stable version, can't be made again: {target.obstacle}"
    failed = [each.name for each in decision.instances if each.error is not None]
    if failed:
        return f"a client in ERROR waits for a person: {listed(failed)}"
    if target.changed and joined(decision) == context.digest:
        return f"pods of the new version have run, and not the same is there for both: {listed(list(target.changed))}"
    return None


def stable(decision: Decision) -> str:
    """The digest of the last version of which every instance served."""
    context = decision.context
    wanted = [each for each in decision.instances if each.ordinal < context.replicas]
    there = decision.phase is Phase.RUN and len(wanted) == context.replicas > 0
    if context.digest is not None and there and all(arrived(each) and not each.outdated for each in wanted):
        return context.digest
    return context.past.stable


def joined(decision: Decision) -> str:
    """The digest of the last version of which a pod has come further than CREATED: it may have written something."""
    context = decision.context
    states = [each.pod.state for each in decision.instances if each.pod is not None and each.digest == context.digest]
    if context.digest is not None and any(state not in (None, ClientState.CREATED) for state in states):
        return context.digest
    return context.past.joined


def rolled_back_status(record: RolledBack) -> RolledBackStatus:
    """status.rolledBack."""
    return RolledBackStatus(
        version=record.version,
        to=record.to,
        generation=record.generation,
        restart_nonce=record.nonce,
        at=text_of(record.at),
        message=record.why,
    )


def rolled_back_message(record: RolledBack) -> str:
    """The same for people, with what to do next."""
    return (
        f"the spec of generation {record.generation} (version {record.version}) did not get to RUNNING and restored in"
        f" spec.progressDeadline: {record.why}. Pods are of version {record.to} again, the last that was stable. Change"
        f" the spec, or set spec.restartNonce to {record.nonce + 1} to try it again"
    )


def _too_late(decision: Decision) -> bool:
    """Whether the version in force is what does not arrive: of its pods, or for want of its topics."""
    if decision.phase is not Phase.RUN:
        return False
    return any(not each.outdated for each in decision.late) or overdue(decision.context, decision.wait_for_topics)


def _why(decision: Decision) -> str:
    late = [f"{each.name}: {holdup(decision.context, each)}" for each in decision.late if not each.outdated]
    if not late:
        _, reason, message = decision.topics.condition or decision.context.past.condition("InternalTopicsReady")
        late = [f"the internal topics are not ready: {reason}: {message}"]
    return clipped("; ".join(late[:_SHOWN]), _WHY_LENGTH)
