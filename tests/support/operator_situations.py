"""Every situation that operator/CONDITIONS.md lists, as the operator observes it, and the resource tools then see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from operator_cases import CRASH, ERROR, PENDING, digest_of, observed, remembered, status_of
from operator_world import START, ready_topics, running

from streams_operator.model import AwaitedImage, Observed, PodState, ResetAnswer, TopicsState
from streams_operator.names import ANNOTATION_HOLD
from streams_operator.plan.reset.reset_record import request_of
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.errors import Mistake
from streams_runtime.topics.reset.reset_plan import ResetOutlook, ResetPlan

NOW = digest_of()
OLD = "0123456789"
PULLING = {**PENDING, "reason": "ImagePullBackOff", "message": "no such image"}
RESTORING: dict[str, Any] = {"state": "REBALANCING", "ready": False, "restored": False, "records_left": 7}
STUCK: dict[str, Any] = {"deleting": True, "ready": False, "gone_by": START - 3600, "node": "n7"}
BACK = {"rollback": "automatic"}
PAUSED = {"paused": True}
RESET: dict[str, Any] = {"reset": {"nonce": 1, "to": "earliest"}}
MANUAL = {"internalTopics": {"setup": "manual"}}
ABSENT = TopicsState(START, False, missing=("t",), tasks=4)
LOST = TopicsState(START, False, ("a",), ("t",), 4)
AWAY = TopicsState(START, False, failure=("BrokerNotAvailable", "no broker answers at kafka:9092"))
LATE = 3600.0


def two(**second: Any) -> list[PodState]:
    return [running(0, NOW), running(1, NOW, **second)]


def paused() -> Observed:
    pods = [running(ordinal, NOW, paused=True, pause_signaled=True) for ordinal in range(2)]
    return observed(PAUSED, pods, status=remembered(*pods, spec=PAUSED))


def held(spec: Mapping[str, Any] | None, pods: Sequence[PodState]) -> Observed:
    """With the annotation that keeps the operator from changing anything."""
    return observed(spec, pods, metadata={"annotations": {ANNOTATION_HOLD: "true"}})


def by_hand() -> list[PodState]:
    return [running(ordinal, digest_of(MANUAL)) for ordinal in range(2)]


def after(pods: Sequence[PodState], seconds: float = LATE, **more: Any) -> Observed:
    """The same pods, so long after the operator has first seen them so."""
    spec = more.pop("spec", None)
    topics = more.pop("topics", None) or ready_topics()
    return observed(spec, pods, topics, remembered(*pods, spec=spec, topics=topics), now=START + seconds, **more)


def rolled_back() -> Observed:
    """The version OLD was given up for this one."""
    record = {"version": OLD, "to": NOW, "generation": 1, "restartNonce": 0, "message": "orders-1: no such image"}
    status = {**remembered(*two(), spec=BACK), "rolledBack": record}
    return observed(BACK, two(), status=status, rolled_back=True)


def waiting(stopped: bool) -> Observed:
    """With the image that was the default before."""
    return observed(pods=two(), status=remembered(*two()), awaited=AwaitedImage("runtime:2", 10, stopped))


def invalid(pods: Sequence[PodState]) -> Observed:
    found = observed(pods=pods, status=remembered(*pods))
    mistake = Mistake("spec.topology.steps[0].where", "unknown column 'x'", "name one of: user, amount")
    return Observed(found.resource, None, (mistake,), found.now, tuple(pods), defaults=found.defaults)


def resetting(
    seconds: float = 1.0, suspend: bool = True, refusals: tuple[str, ...] = (), members: tuple[str, ...] = ()
) -> Observed:
    """The brokers have answered, and so long ago they had said the same."""
    spec: dict[str, Any] = {"suspend": True, **RESET}
    outlook = ResetOutlook(None if refusals else ResetPlan(("t",), ()), refusals, members)
    answer = ResetAnswer("reset-check", request_of(ResetSpec.model_validate(spec["reset"])), START, outlook)
    status = status_of(observed(spec, reset=answer))
    return observed({**spec, "suspend": suspend}, status=status, reset=answer, now=START + seconds)


SITUATIONS: Sequence[tuple[str, Callable[[], Observed]]] = (
    ("new, nobody has looked at the brokers", lambda: observed(topics=None)),
    ("new, internal topics are being made", lambda: observed(topics=ABSENT)),
    ("new, manual set-up, no init() yet", lambda: observed(MANUAL, topics=ABSENT)),
    ("the same for longer than `progressDeadline`", lambda: after([], spec=MANUAL, topics=ABSENT)),
    ("new, no broker answers", lambda: observed(topics=AWAY)),
    ("the same for longer than `progressDeadline`", lambda: after([], topics=AWAY)),
    ("pods are being made", observed),
    ("pods start", lambda: observed(pods=two(**PENDING))),
    ("an image can't be pulled", lambda: observed(pods=two(**PULLING))),
    ("the same for longer than `progressDeadline`", lambda: after(two(**PULLING))),
    ("a version was given up: `rollback: automatic`", rolled_back),
    ("a pod restores", lambda: observed(pods=two(**RESTORING))),
    ("all run", lambda: observed(pods=two(), status=remembered(*two()))),
    ("a pod says RUNNING and is not ready", lambda: observed(pods=two(ready=False))),
    ("a pod on a lost node does not answer", lambda: observed(pods=two(silent=True))),
    ("a deleted pod stays on a lost node", lambda: observed(pods=two(**STUCK))),
    ("a pod has crashed and rests", lambda: observed(pods=two(**CRASH))),
    ("a pod has ended in ERROR", lambda: observed(pods=two(**ERROR))),
    ("a new version rolls out", lambda: observed(pods=[running(0, OLD), running(1, NOW, **RESTORING)])),
    ("a new default image goes to others first", lambda: waiting(stopped=False)),
    ("another application is Degraded with it", lambda: waiting(stopped=True)),
    ("scaling down", lambda: observed({"replicas": 1}, two(), status=remembered(*two()))),
    ("scaling down to none", lambda: observed({"replicas": 0}, two(), status=remembered(*two()))),
    ("no replicas", lambda: observed({"replicas": 0})),
    ("suspending", lambda: observed({"suspend": True}, two(), status=remembered(*two()))),
    ("suspended", lambda: observed({"suspend": True})),
    ("a reset waits for members of the group", lambda: resetting(members=("orders-1 at h",))),
    ("the same for longer than `progressDeadline`", lambda: resetting(LATE, members=("orders-1 at h",))),
    ("a reset is refused", lambda: resetting(refusals=("no such partition",))),
    (
        "a reset is asked for while pods run, which is refused",
        lambda: observed(RESET, two(), status=remembered(*two())),
    ),
    ("a reset is under way", resetting),
    ("the same, and spec.suspend is false again", lambda: resetting(suspend=False)),
    ("pausing", lambda: observed(PAUSED, [running(0, NOW, paused=True), running(1, NOW)])),
    ("paused", paused),
    ("going on after a pause", lambda: observed(pods=paused().pods, status=status_of(paused()))),
    ("gone on after a pause", lambda: observed(pods=two(), status=status_of(paused()))),
    ("`streamsoperator.io/pause-reconciliation`", lambda: held(None, two())),
    ("the same, a new version waits", lambda: held(None, [running(0, OLD), running(1, OLD)])),
    ("the same, and no pod yet", lambda: held(None, [])),
    ("the same, suspended", lambda: held({"suspend": True}, [])),
    ("the same, and to be suspended", lambda: held({"suspend": True}, two())),
    ("the spec is invalid, pods run on", lambda: invalid(two())),
    ("manual set-up, a topic was lost, pods run on", lambda: observed(MANUAL, by_hand(), LOST, remembered(*by_hand()))),
    ("being deleted", lambda: observed(pods=two(), metadata={"deletionTimestamp": "2027-01-15T08:00:00Z"})),
)


def as_served(found: Observed) -> dict[str, Any]:
    """The resource as tools see it after the operator's round."""
    return {**found.resource, "status": status_of(found)}
