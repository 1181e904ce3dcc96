"""Events: what is other than in the previous status, and each pod that is made or removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from streams_operator.model import Event
from streams_operator.names import ANNOTATION_SHUTDOWN
from streams_operator.plan.decision import Decision, Phase
from streams_operator.plan.pods.lost_nodes import STUCK_TERMINATING
from streams_operator.plan.pods.progress import EXCEEDED
from streams_operator.plan.reset.reset_record import REFUSED
from streams_operator.plan.status.complaints import TOPOLOGY_REFUSED, complaints
from streams_operator.plan.status.message_texts import EVENT_LENGTH, clipped, listed
from streams_operator.plan.topics import SET_UP
from streams_operator.plan.version.rollback import ROLLBACK_REFUSED, ROLLED_BACK
from streams_runtime.api.status.resource_status import ApplicationStatus
from streams_runtime.states import ClientState

_BAD = ("ERROR", "INVALID")
_ONCE = (
    "ForeignPods",
    "StorageKept",
    TOPOLOGY_REFUSED,
    STUCK_TERMINATING,
    EXCEEDED,
    ROLLED_BACK,
    ROLLBACK_REFUSED,
)


def events(decision: Decision, status: ApplicationStatus) -> Iterator[Event]:
    """The events of a decision; none when it changes nothing."""
    yield from _state(decision, status)
    yield from _spec(decision, status)
    yield from _topics(decision, status)
    yield from _reset(decision)
    yield from _pods(decision)
    yield from _complaints(decision)
    if decision.scaling is not None:
        yield from (_event(each.type, each.reason, each.message) for each in decision.scaling.events)
    if decision.moves.create:
        names = listed([each.name for each in decision.moves.create])
        yield _event("Normal", "PodsCreated", f"made {names}")
    for leaving in decision.moves.remove:
        yield _event("Normal", "PodRemoved", f"removed {leaving.pod.name}: {leaving.why}")
    rolled = decision.phase is Phase.RUN and decision.context.past.condition("Progressing")[1] == "RollingOut"
    if rolled and _condition(status, "Progressing")[1] != "RollingOut":
        yield _event("Normal", "RolledOut", "all pods that were to be replaced are replaced")


def _event(type: Literal["Normal", "Warning"], reason: str, message: str) -> Event:
    return Event(type, reason, clipped(message, EVENT_LENGTH))


def _state(decision: Decision, status: ApplicationStatus) -> Iterator[Event]:
    before, now = decision.context.past.state, status.state
    # The pods that are made say of a new application that it is new.
    if now != before and (before or not decision.moves.create):
        yield _event("Warning" if now in _BAD else "Normal", "StateChanged", f"{before or 'new'} → {now}")


def _spec(decision: Decision, status: ApplicationStatus) -> Iterator[Event]:
    now = _condition(status, "Ready")
    if decision.phase is Phase.INVALID and decision.context.past.condition("Ready") != now:
        yield _event("Warning", "InvalidSpec", now[2])


def _topics(decision: Decision, status: ApplicationStatus) -> Iterator[Event]:
    before, now = decision.context.past.condition("InternalTopicsReady"), _condition(status, "InternalTopicsReady")
    good = now[0] == "True"
    # Topics that are there from the beginning are no news: the pods that are made say as much.
    expected = good and before[1] in ("", "NotChecked")
    if before[:2] != now[:2] and now[1] != "NotChecked" and not expected:
        yield _event("Normal" if good else "Warning", "InternalTopicsReady" if good else now[1], now[2])
    init = decision.topics.shown.init
    if init is not None and init.nonce != decision.context.past.init_nonce:
        good = init.result in SET_UP
        text = f"init() of nonce {init.nonce}: {init.result}. {init.message}".rstrip(". ")
        yield _event("Normal" if good else "Warning", "InternalTopicsInit", text)


def _reset(decision: Decision) -> Iterator[Event]:
    """Each state that a reset comes to."""
    before, now = decision.context.past.status.reset, decision.reset.shown
    if now is None or (before is not None and (before.request, before.state) == (now.request, now.state)):
        return
    text = f"{decision.reset.title}: {now.message}"
    yield _event("Warning" if now.state == REFUSED else "Normal", f"Reset{now.state}", text)


def _pods(decision: Decision) -> Iterator[Event]:
    for each in decision.instances:
        past = decision.context.past.instances.get(each.name)
        last = each.account.last
        if last is not None and (past is None or past.account.last is None or past.account.last.uid != last.uid):
            again = f"it is made again, for the {each.account.restarts}. time in a row"
            yield _event("Warning", "PodCrashed", f"{each.name} crashed ({last.reason}); {again}")
        if each.state == ClientState.ERROR and each.error and (past is None or past.state != ClientState.ERROR):
            text = f"{each.name} ended in ERROR and is not started again: {each.error[0]}: {each.error[1]}"
            yield _event("Warning", "PodInError", text)
        if each.shutdown_requested and not (past is not None and past.shutdown_requested):
            why = f": {each.error[0]}: {each.error[1]}" if each.error else ""
            yield _event("Warning", "ShutdownRequested", f"{each.name} asks for the end of the whole application{why}")
    for signal in decision.signals:
        if signal.annotation == ANNOTATION_SHUTDOWN:
            yield _event("Normal", "ShutdownSignaled", f"asked {signal.pod} to end with the application")


def _complaints(decision: Decision) -> Iterator[Event]:
    before = decision.context.past.condition("Degraded")[2]
    for reason, text in complaints(decision):
        if reason in _ONCE and text not in before:
            yield _event("Warning", reason, text)


def _condition(status: ApplicationStatus, type: str) -> tuple[str, str, str]:
    found = next(each for each in status.conditions if each.type == type)
    return found.status, found.reason, found.message
