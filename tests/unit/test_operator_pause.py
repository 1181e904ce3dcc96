"""spec.paused: which pods are signaled, and when the resource says that nothing is processed (KIP-834)."""

from __future__ import annotations

from typing import Any

import pytest
from operator_cases import CRASH, ERROR, condition, digest_of, made, observed, remembered, removed, status_of
from operator_world import running

from streams_operator import names
from streams_operator.model import PodState
from streams_operator.plan import plan
from streams_runtime.cli.process import pause_request

PAUSED = {"paused": True}
NOW = digest_of()


def pods(*each: dict[str, Any]) -> list[PodState]:
    return [running(ordinal, NOW, **changes) for ordinal, changes in enumerate(each)]


SIGNALED = {"pause_signaled": True}
QUIET = {"pause_signaled": True, "paused": True}


def signals(spec: dict[str, Any] | None, found: list[PodState], **more: Any) -> list[tuple[str, str | None]]:
    todo = plan(observed(spec, found, **more))
    assert {each.annotation for each in todo.signals} <= {names.ANNOTATION_PAUSED, names.ANNOTATION_LEAVE}
    return [(each.pod, each.text) for each in todo.signals if each.annotation == names.ANNOTATION_PAUSED]


def test_a_change_of_paused_replaces_no_pod() -> None:
    assert digest_of(PAUSED) == NOW
    todo = plan(observed(PAUSED, pods({}, {})))
    assert not removed(todo)
    assert not made(todo)


def test_each_pod_is_signaled_once_to_pause_and_once_to_go_on() -> None:
    assert signals(PAUSED, pods({}, SIGNALED)) == [("orders-0", "true")]
    assert signals(PAUSED, pods(SIGNALED, QUIET)) == []
    assert signals(None, pods(QUIET, {})) == [("orders-0", None)]
    assert signals(None, pods({"paused": True}, {})) == []


def test_pods_that_have_ended_or_are_going_are_left_alone() -> None:
    assert signals(PAUSED, pods(ERROR, CRASH)) == []
    assert signals(PAUSED, pods({"deleting": True, "ready": False}, SIGNALED)) == []


def test_a_suspended_application_has_nobody_to_signal() -> None:
    assert signals({"paused": True, "suspend": True}, pods({}, {})) == []


def test_a_pod_that_is_made_while_paused_finds_it_at_its_start() -> None:
    todo = plan(observed(PAUSED))
    annotations = [each["metadata"]["annotations"] for each in todo.apply if each["kind"] == "Pod"]
    assert [each[names.ANNOTATION_PAUSED] for each in annotations] == ["true", "true"]
    todo = plan(observed())
    annotations = [each["metadata"]["annotations"] for each in todo.apply if each["kind"] == "Pod"]
    assert annotations
    assert all(names.ANNOTATION_PAUSED not in each for each in annotations)


def test_a_pod_reads_it_as_a_file() -> None:
    made_pod = next(each for each in plan(observed(PAUSED)).apply if each["kind"] == "Pod")
    volume = next(each for each in made_pod["spec"]["volumes"] if each["name"] == "told")
    assert names.PAUSE_FILE == pause_request.PAUSE_FILE
    paths = {item["path"]: item["fieldRef"]["fieldPath"] for item in volume["downwardAPI"]["items"]}
    assert paths[names.PAUSE_FILE] == f"metadata.annotations['{names.ANNOTATION_PAUSED}']"
    mounts = made_pod["spec"]["containers"][0]["volumeMounts"]
    assert {"name": "told", "mountPath": names.SHUTDOWN_MOUNT, "readOnly": True} in mounts


@pytest.mark.parametrize(
    ("spec", "found", "said"),
    [
        (PAUSED, pods(SIGNALED, QUIET), ("False", "Pausing", "orders-0 still process records")),
        (PAUSED, pods(QUIET, QUIET), ("True", "Paused", "no instance processes records, as spec.paused is true")),
        (PAUSED, pods(QUIET, {**ERROR, "pause_signaled": True}), ("True", "Paused", "")),
        ({"paused": True, "suspend": True}, pods(QUIET), ("False", "NotRunning", "")),
        ({"paused": True, "replicas": 0}, [], ("True", "Paused", "")),
    ],
)
def test_paused_is_true_when_no_pod_processes(
    spec: dict[str, Any], found: list[PodState], said: tuple[str, str, str]
) -> None:
    held = condition(status_of(observed(spec, found)), "Paused")
    assert (held["status"], held["reason"]) == said[:2]
    assert said[2] in held["message"]


def test_it_is_not_there_until_it_was_asked_for_and_stays_since() -> None:
    before = remembered(*pods({}, {}))
    assert "Paused" not in {each["type"] for each in before["conditions"]}
    during = status_of(observed(PAUSED, pods(QUIET, QUIET), status=before))
    going_on = status_of(observed(None, pods(QUIET, {}), status=during))
    held = condition(going_on, "Paused")
    assert (held["status"], held["reason"], held["message"]) == ("True", "Resuming", "orders-0 still process nothing")
    after = condition(status_of(observed(None, pods({}, {}), status=going_on)), "Paused")
    assert (after["status"], after["reason"]) == ("False", "NotPaused")


def test_a_paused_application_is_ready_and_not_degraded() -> None:
    status = remembered(*pods(QUIET, QUIET), spec=PAUSED)
    assert status["state"] == "RUNNING"
    assert condition(status, "Ready")["status"] == "True"
    assert condition(status, "Degraded")["status"] == "False"
