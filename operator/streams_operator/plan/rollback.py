"""`spec.rollback: automatic`: a new version that does not arrive is given up for the last stable one.

Only the deadline gives a version up. A client in ERROR waits for a person, as everywhere; and what has run with other
topics is not given up, since its records would be left half processed in them.
"""

from __future__ import annotations

from typing import Any

from streams_operator.plan.decision import Decision, Phase
from streams_operator.plan.holdup import holdup
from streams_operator.plan.past import RolledBack
from streams_operator.plan.progress import overdue
from streams_operator.plan.rolling import arrived
from streams_operator.plan.times import text_of
from streams_operator.plan.words import clipped, listed
from streams_runtime.states import ClientState

ROLLED_BACK = "RolledBack"
"""Reason of Degraded, of Progressing, and of the event."""
ROLLBACK_REFUSED = "RollbackRefused"
"""Reason of Degraded and of the event."""

_SHOWN = 3  # late instances of which the cause is kept
_WHY_LENGTH = 2_000  # bytes


def given_up(decision: Decision) -> RolledBack | None:
    """The version that is given up now, or was before and stays so."""
    case = decision.case
    if case.observed.rolled_back:
        return case.past.rolled_back
    way = case.observed.way_back
    if way is None or case.digest is None or refusal(decision) is not None or not _too_late(decision):
        return None
    generation = case.metadata.get("generation", 0)
    return RolledBack(case.digest, way.version, generation, case.nonce, case.now, _why(decision))


def refusal(decision: Decision) -> str | None:
    """Why a version that comes too late is kept all the same; None: it does not, or nothing speaks against it."""
    case, way = decision.case, decision.case.observed.way_back
    if way is None or not _too_late(decision):
        return None
    if way.obstacle:
        return f"{way.version}, the last stable version, can't be made again: {way.obstacle}"
    failed = [each.name for each in decision.instances if each.error is not None]
    if failed:
        return f"a client in ERROR waits for a person: {listed(failed)}"
    if way.changed and joined(decision) == case.digest:
        return f"pods of the new version have run, and not the same is there for both: {listed(list(way.changed))}"
    return None


def stable(decision: Decision) -> str:
    """The digest of the last version of which every instance served."""
    case = decision.case
    wanted = [each for each in decision.instances if each.ordinal < case.replicas]
    there = decision.phase is Phase.RUN and len(wanted) == case.replicas > 0
    if case.digest is not None and there and all(arrived(each) and not each.outdated for each in wanted):
        return case.digest
    return case.past.stable


def joined(decision: Decision) -> str:
    """The digest of the last version of which a pod has come further than CREATED: it may have written something."""
    case = decision.case
    states = [each.pod.state for each in decision.instances if each.pod is not None and each.digest == case.digest]
    if case.digest is not None and any(state not in (None, ClientState.CREATED) for state in states):
        return case.digest
    return case.past.joined


def shown(record: RolledBack) -> dict[str, Any]:
    """status.rolledBack."""
    return {
        "version": record.version,
        "to": record.to,
        "generation": record.generation,
        "restartNonce": record.nonce,
        "at": text_of(record.at),
        "message": record.why,
    }


def told(record: RolledBack) -> str:
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
    return any(not each.outdated for each in decision.late) or overdue(decision.case, decision.wait_for_topics)


def _why(decision: Decision) -> str:
    late = [f"{each.name}: {holdup(decision.case, each)}" for each in decision.late if not each.outdated]
    if not late:
        _, reason, message = decision.topics.condition or decision.case.past.condition("InternalTopicsReady")
        late = [f"the internal topics are not ready: {reason}: {message}"]
    return clipped("; ".join(late[:_SHOWN]), _WHY_LENGTH)
