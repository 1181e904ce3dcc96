"""The conditions of a pod, decided from what its client is and does. The operator reads nothing else of a pod.

The names are those of the operator (streams_operator.names); a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from streams_runtime.errors import message_of
from streams_runtime.states import ClientState

CONDITION_RUNNING = "streamsoperator.io/Running"
"""True in RUNNING. Reason: the client's state (KIP-696)."""
CONDITION_RESTORED = "streamsoperator.io/Restored"
"""True when all stores of the pod are restored. Message: `N records left`."""
CONDITION_SPARK_READY = "streamsoperator.io/SparkReady"
"""True once Spark has compiled the topology; a client may be RUNNING before. What Spark refuses ends it in ERROR."""
CONDITION_RESTARTABLE = "streamsoperator.io/Restartable"
"""False from PENDING_ERROR on. Reason: the exception's class, message: its text."""
CONDITION_SHUTDOWN_REQUESTED = "streamsoperator.io/ShutdownRequested"
"""True when the client asks all others of the application to end too (SHUTDOWN_APPLICATION); otherwise it is not there.
Reason: the exception's class, message: its text.
"""
CONDITION_PAUSED = "streamsoperator.io/Paused"
"""True while the client is paused (KIP-834); not there when it never was."""

ANNOTATION_LEAVE = "streamsoperator.io/leave-group"
"""On a pod that is removed for good: `true`, so that its client leaves the group when it closes (KIP-812)."""

MESSAGE_LENGTH = 2000
"""Characters of a condition's message: an exception's text may list hundreds of mistakes, a status is no log."""

_FAILED = frozenset({ClientState.PENDING_ERROR, ClientState.ERROR})
_ENDING = _FAILED | {ClientState.PENDING_SHUTDOWN, ClientState.NOT_RUNNING}


@dataclass(frozen=True, slots=True)
class Failure:
    """What a client ended by: the exception's class and its text."""

    name: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The failure that an exception is."""
        return cls(type(error).__name__, message_of(error))


@dataclass(frozen=True, slots=True)
class ClientView:
    """A client, as far as its pod's conditions show it.

    `running_tasks` and `restoring_tasks` count its tasks of these states; `records_left` is what the restorations that
    go on have still to read. `note` is said with the state when there is something to say about it. `paused` is None
    when the client was never paused.
    """

    state: ClientState
    running_tasks: int = 0
    restoring_tasks: int = 0
    records_left: int = 0
    failure: Failure | None = None
    note: str = ""
    shutdown_requested: bool = False
    paused: bool | None = None
    spark_ready: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """A pod condition without its times. `reason` is one word, `message` a sentence or nothing."""

    type: str
    holds: bool
    reason: str
    message: str = ""


def conditions(view: ClientView) -> tuple[Condition, ...]:
    """What the pod says of itself while its client is like this."""
    running = Condition(CONDITION_RUNNING, view.state is ClientState.RUNNING, str(view.state), bounded(view.note))
    failure = view.failure if view.state in _FAILED else None
    spark = Condition(CONDITION_SPARK_READY, view.spark_ready, "Ready" if view.spark_ready else "NotReady")
    said = [running, _restored(view), spark, restartable(failure)]
    if failure is not None and view.shutdown_requested:
        said.append(Condition(CONDITION_SHUTDOWN_REQUESTED, True, failure.name, bounded(failure.text)))
    if view.paused is not None:
        said.append(Condition(CONDITION_PAUSED, view.paused, "Paused" if view.paused else "Resumed"))
    return tuple(said)


def restartable(failure: Failure | None) -> Condition:
    """Whether starting the pod's client again may help; after a failure a person has to look first (KIP-696)."""
    if failure is None:
        return Condition(CONDITION_RESTARTABLE, True, "NoError")
    return Condition(CONDITION_RESTARTABLE, False, failure.name, bounded(failure.text))


def _restored(view: ClientView) -> Condition:
    message = f"{view.records_left} records left"
    if view.state in _ENDING:
        return Condition(CONDITION_RESTORED, False, "Closed", message)
    if view.restoring_tasks or view.records_left:
        return Condition(CONDITION_RESTORED, False, "Restoring", message)
    # A client without tasks is done once the group has told it so, which is when it is RUNNING.
    if view.state is ClientState.RUNNING or view.running_tasks:
        return Condition(CONDITION_RESTORED, True, "Restored", message)
    return Condition(CONDITION_RESTORED, False, "WaitingForTasks", message)


def bounded(text: str, length: int = MESSAGE_LENGTH) -> str:
    """The text, or its beginning and what is missing, in at most `length` characters."""
    if len(text) <= length:
        return text
    end = f"… ({len(text)} characters; the pod's log has all)"
    return text[: length - len(end)] + end


class Transitions:
    """Turns conditions into those of a pod's status: `lastTransitionTime` is when `status` last became what it is."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[bool, str]] = {}

    def status(self, wanted: Sequence[Condition], now: datetime) -> list[Mapping[str, Any]]:
        """The items of `status.conditions` for what is said at `now` (aware). To be called once for each change."""
        return [self._item(each, now) for each in wanted]

    def _item(self, condition: Condition, now: datetime) -> Mapping[str, Any]:
        held, since = self._since.get(condition.type, (None, ""))
        if held is not condition.holds:
            since = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self._since[condition.type] = (condition.holds, since)
        return {
            "type": condition.type,
            "status": str(condition.holds),
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": since,
        }
