"""The application's state: the weakest of its pods'."""

from __future__ import annotations

from streams_operator.plan.decision import Decision, Phase
from streams_runtime.states import ClientState

_WEAKEST_FIRST = (
    ClientState.ERROR,
    ClientState.PENDING_ERROR,
    ClientState.PENDING_SHUTDOWN,
    ClientState.CREATED,
    ClientState.REBALANCING,
    ClientState.RUNNING,
)


def state(decision: Decision) -> str:
    """One of the clients' states, or WAITING, SUSPENDED, INVALID, DELETING."""
    if decision.phase is Phase.DELETE:
        return "DELETING"
    if decision.phase is Phase.INVALID:
        return "INVALID"
    if decision.context.suspended and not decision.context.own:
        return "SUSPENDED"
    if decision.waiting:
        return "WAITING"
    states = {each.state for each in decision.instances}
    return next(str(each) for each in _WEAKEST_FIRST if each in states)
